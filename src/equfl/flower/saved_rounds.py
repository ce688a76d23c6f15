"""The rounds of a federation on the disk, so that a SuperLink that was killed goes on from the last one.

The same checkpoints as those of a run folder: written whole or not at all, what has not changed only once, no pickles.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from equfl.core.errors import RunError
from equfl.core.protocol import ServerState
from equfl.flower.records import Form
from equfl.runs.checkpoint import Checkpoints

INNER = "inner/"
"""Begins the names under which the inner strategy's arrays lie beside the method's memory."""


@dataclass(frozen=True)
class Saved:
    """A round as it was saved."""

    state: ServerState
    arrays: Mapping[str, Tensor]
    """What the inner strategy remembers in arrays."""
    rest: Mapping[str, Any]


class SavedRounds:
    """A folder of checkpoints that belongs to one federation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._checkpoints = Checkpoints(folder)
        self._about: dict[str, Any] = {}

    def run_is(self, about: Mapping[str, Any], form: Form) -> None:
        """What the saved rounds must have been computed with."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._about = {**about, "model": {name: list(shape) for name, shape in form.shapes.items()}}

    def newest(self) -> Saved | None:
        """The newest round that is whole; ``None`` if none is."""
        for path in self._checkpoints.newest_first():
            found = self._checkpoints.read(path)
            if found is None:
                continue
            before = found.about["run"]
            different = [name for name, value in self._about.items() if before.get(name) != value]
            if different:
                raise RunError(
                    f"{self.folder} holds rounds with {different[0]} = {before.get(different[0])}",
                    wanted=f"{different[0]} = {self._about[different[0]]}",
                    remedy="Give this federation a folder of its own, or run it as it was",
                )
            memory = {name: value for name, value in found.state.memory.items() if not name.startswith(INNER)}
            inner = {n.removeprefix(INNER): value for n, value in found.state.memory.items() if n.startswith(INNER)}
            return Saved(replace(found.state, memory=memory), inner, found.about["inner"])
        return None

    def save(self, state: ServerState, arrays: Mapping[str, Tensor], rest: Mapping[str, Any]) -> None:
        """Write a round; once this returns, a power cut does not lose it."""
        memory = {**state.memory, **{f"{INNER}{name}": value for name, value in arrays.items()}}
        self._checkpoints.save(replace(state, memory=memory), {"run": self._about, "inner": rest}, safe=True)
