"""Where a run is kept while it is computed: here in memory, in ``folder.py`` on the disk."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from equfl.config.schema import RunConfig
from equfl.core.protocol import RoundRecord, ServerState
from equfl.data.base import Federation
from equfl.runs.result import Run

Progressed = tuple[tuple[RoundRecord, ...], ServerState | None]
"""The rounds that are done, and the state after them; ``None`` where nothing has begun."""


class Store:
    """Keeps nothing but where to begin: the run ends with the process, and its values are the caller's."""

    path: Path | None = None

    def __init__(self) -> None:
        self._begun: Progressed = ((), None)

    def beside(self, config: RunConfig) -> AbstractContextManager["Store"]:
        """A place for the run that this one is compared with."""
        return nullcontext(Store())

    def rows_are(self, federation: Federation) -> None:
        """Write down what the run is computed from, or check that it is the same as before."""

    def resume(self) -> Progressed:
        """From where to go on."""
        return self._begun

    def begin_at(self, records: Sequence[RoundRecord], state: ServerState) -> None:
        """Take over rounds that were computed elsewhere, unless there are some already."""
        self._begun = tuple(records), state

    def save(self, record: RoundRecord, state: ServerState) -> None:
        """Keep a round: from now on, it need not be computed again."""

    def finish(self, run: Run) -> None:
        """Keep what came out."""
