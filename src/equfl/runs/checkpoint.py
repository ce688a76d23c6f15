"""Server states as files: after each round one that a run can go on from, however it ended."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from torch import Tensor

from equfl.core.protocol import ServerState
from equfl.data import tensor_file

KEPT = 2
"""How many checkpoints stay: should the newest be damaged, there is one before it."""


@dataclass(frozen=True)
class Checkpoint:
    """A state, and what the run knows of itself at that moment."""

    path: Path
    state: ServerState
    about: Mapping[str, Any]


class Checkpoints:
    """A folder of ``round-00040.safetensors``, of which the newest stay.

    An entry of memory that is still the same tensor as at the last checkpoint is written to a file of its own, once,
    named by its content, and from then on referred to: collected models are not copied in every round.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._memory: Mapping[str, Tensor] = {}
        """The memory as it was last written or read."""
        self._files: dict[str, str] = {}
        """Which of its entries have a file of their own."""
        self._used: dict[Path, set[str]] = {}
        """The files that each checkpoint refers to."""
        self._unsafe: set[Path] = set()
        """Files that a power cut might take."""
        self._safe: Path | None = None
        """The newest checkpoint that a power cut would leave."""

    def save(self, state: ServerState, about: Mapping[str, Any], *, safe: bool) -> None:
        """Write a state; if ``safe``, nothing that it needs can be lost by a power cut."""
        same = {name for name, value in state.memory.items() if self._memory.get(name) is value}
        self._files = {name: self._files.get(name) or self._write_once(state.memory[name]) for name in same}
        self._memory = dict(state.memory)
        path = self.folder / f"round-{state.round:05d}.safetensors"
        if safe:
            self._make_safe()
        tensors = {
            "vector": state.vector,
            **{f"buffers/{name}": value for name, value in state.buffers.items()},
            **{f"memory/{name}": value for name, value in state.memory.items() if name not in same},
        }
        known = {**about, "round": state.round, "idle": state.idle, "files": self._files}
        tensor_file.write(path, tensors, known, sync=safe)
        self._used[path] = set(self._files.values())
        self._safe = path if safe else self._safe
        self._clear()

    def newest_first(self) -> Iterator[Path]:
        """The files there are, whole or not."""
        return iter(sorted(self.folder.glob("round-*.safetensors"), reverse=True))

    def read(self, path: Path) -> Checkpoint | None:
        """The checkpoint in a file; ``None`` if anything of it is not as it was written."""
        found = tensor_file.read(path)
        if found is None:
            return None
        tensors, about = found
        parts: dict[str, dict[str, Tensor]] = {"buffers": {}, "memory": {}}
        for name, value in tensors.items():
            if name != "vector":
                part, _, key = name.partition("/")
                parts[part][key] = value
        for name, file in about["files"].items():
            kept = self._read_once(file)
            if kept is None:
                return None
            parts["memory"][name] = kept
        state = ServerState(about["round"], tensors["vector"], parts["buffers"], parts["memory"], about["idle"])
        self._memory, self._files = state.memory, dict(about["files"])
        self._used[path] = set(self._files.values())
        return Checkpoint(path, state, about)

    def _write_once(self, value: Tensor) -> str:
        name = f"memory-{_digest(value)}.safetensors"
        path = self.folder / name
        if self._read_once(name) is None:
            tensor_file.write(path, {"value": value}, {}, sync=False)
            self._unsafe.add(path)
        return name

    def _read_once(self, name: str) -> Tensor | None:
        found = tensor_file.read(self.folder / name)
        if found is None:
            return None
        value = found[0]["value"]
        return value if name == f"memory-{_digest(value)}.safetensors" else None

    def _make_safe(self) -> None:
        for path in self._unsafe:
            with path.open("rb") as file:
                os.fsync(file.fileno())
        self._unsafe = set()

    def _clear(self) -> None:
        """Remove the checkpoints that are too old, and the files that none of the others refers to."""
        checkpoints = list(self.newest_first())
        staying = [path for number, path in enumerate(checkpoints) if number < KEPT or path == self._safe]
        used = {file for path in staying for file in self._used.get(path, ())}
        for path in set(checkpoints) - set(staying):
            path.unlink(missing_ok=True)
            for file in self._used.pop(path, set()) - used:
                (self.folder / file).unlink(missing_ok=True)
                self._unsafe.discard(self.folder / file)


def _digest(value: Tensor) -> str:
    array = value.detach().cpu().contiguous().numpy()
    return blake2b(array.tobytes(), digest_size=16, person=f"{array.dtype}{array.shape}".encode()[:16]).hexdigest()
