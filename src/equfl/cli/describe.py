"""``equfl describe``: every component, every field, every preset."""

import difflib
from typing import Annotated

from tyro.conf import Positional

from equfl.cli.parsing import option
from equfl.core.errors import ComponentError


def describe(
    what: Annotated[Positional[str | None], option("[KIND|NAME|run|preset|privacy]")] = None,
    name: Annotated[Positional[str | None], option("[NAME]")] = None,
    /,
) -> int:
    """Explain what can be chosen: every component of every kind, every setting with type, default and meaning.

    Args:
        what: A kind ('method'), a name ('equfl'), 'run' for the settings of a run, 'preset', or 'privacy' for what
            leaves a client. Nothing: all kinds.
        name: One of that kind.
    """
    from equfl.cli import manual
    from equfl.cli.catalogue import shelves

    if what == "run" and name is None:
        manual.run_settings()
    elif what == "privacy" and name is None:
        manual.privacy()
    elif what in ("preset", "presets"):
        manual.all_presets() if name is None else manual.one_preset(name)
    elif what is None:
        manual.contents(shelves())
    else:
        _components(what, name)
    return 0


def _components(what: str, name: str | None) -> None:
    from equfl.cli import manual
    from equfl.cli.catalogue import shelves

    everything = shelves()
    # A kind is also known by the place in the config where it stands: notions by 'target'.
    kinds = {shelf.path: shelf for shelf in everything.values()} | everything
    if what in kinds:
        manual.kind(kinds[what]) if name is None else manual.component(kinds[what], name)
        return
    holding = [shelf for shelf in everything.values() if what in shelf.components]
    if name is not None or not holding:
        names = [
            "run",
            "preset",
            "privacy",
            *kinds,
            *(name for shelf in everything.values() for name in shelf.components),
        ]
        near = difflib.get_close_matches(what, names, n=1, cutoff=0.5)
        raise ComponentError(
            f"nothing to describe is called {what!r}",
            wanted=f"run, preset, privacy, a kind ({', '.join(everything)}) or the name of a component",
            remedy=f"Did you mean 'equfl describe {near[0]}'" if near else "'equfl describe' lists them all",
        )
    for shelf in holding:
        manual.component(shelf, what)
