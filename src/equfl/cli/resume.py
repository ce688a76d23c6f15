"""``equfl resume``: the rest of a run that was stopped, however it was stopped."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

from tyro.conf import Positional

from equfl.cli.parsing import option


def resume(folder: Annotated[Positional[str], option("DIR")], /) -> int:
    """Go on with a run that was stopped.

    It ends with the same numbers as if it had never been stopped.

    Args:
        folder: The run's folder.
    """
    began = perf_counter()
    from equfl.cli.session import go_on
    from equfl.runs.identity import config_of

    path = Path(folder).expanduser()
    return go_on(config_of(path), path, began=began)
