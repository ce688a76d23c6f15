"""Where the seconds of a round go, beyond what the loop itself can tell."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter

from equfl.core.protocol import RoundRecord
from equfl.data.base import Progress

SYNTHESIS = "synthesising"
"""The task by which a synthesis reports how far it is."""


class Stopwatch:
    """Told of all that goes on, it takes the synthesis out of the server's step and adds the writing of files."""

    def __init__(self, forward: Progress) -> None:
        self._forward = forward
        self._synthesis: list[float] = []
        self._files = 0.0

    def working(self, task: str, done: int, total: int) -> None:
        """Long work is going on in this round."""
        if task == SYNTHESIS:
            self._synthesis.append(perf_counter())
        self._forward(task, done, total)

    def stamped(self, record: RoundRecord) -> RoundRecord:
        """The round's record with all its seconds; ``files`` is what it took to save the round before."""
        synthesis = self._synthesis[-1] - self._synthesis[0] if self._synthesis else 0.0
        self._synthesis = []
        server = record.seconds["server"] - synthesis
        return replace(
            record, seconds={**record.seconds, "server": server, "synthesis": synthesis, "files": self._files}
        )

    @contextmanager
    def saving(self) -> Iterator[None]:
        """The block saves the round."""
        began = perf_counter()
        yield
        self._files = perf_counter() - began
