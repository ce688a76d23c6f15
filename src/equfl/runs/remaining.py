"""How long many runs will still take, from what those before them have taken."""

from collections.abc import Sequence
from statistics import fmean
from time import perf_counter

from equfl.config.schema import RunConfig
from equfl.runs.grid import Advanced, Event, Failed, Finished

FIRST = 50
"""Rounds before which the clock says more about the beginning, when packages and data are loaded, than about rounds."""


class Remaining:
    """Told of every event, it knows how many rounds are done, and estimates the rest.

    A round costs what it has cost in finished runs of the same method; before there is one, what any has cost; and
    before that, what the clock says.
    """

    def __init__(self, configs: Sequence[RunConfig], processes: int) -> None:
        self._processes = processes
        self._left = {config: config.rounds for config in configs}
        self._costs: dict[str, list[float]] = {}
        self._began = perf_counter()
        self._computed = 0
        self.rounds = sum(self._left.values())
        """Of all runs."""

    def see(self, event: Event) -> None:
        """Something has happened."""
        if isinstance(event, Advanced):
            self._computed += 1
            self._left[event.config] = event.config.rounds - event.round
        elif isinstance(event, Finished | Failed):
            self._left.pop(event.config, None)
            if isinstance(event, Finished):
                cost = sum(event.result["seconds"].values()) / event.config.rounds
                self._costs.setdefault(event.config.method.name, []).append(cost)

    @property
    def done(self) -> int:
        """Rounds that need not be computed any more."""
        return self.rounds - sum(self._left.values())

    @property
    def seconds(self) -> float | None:
        """Until all is done; ``None`` while nothing is known."""
        at_once = min(self._processes, len(self._left))
        if not self._left:
            return 0.0
        if self._costs:
            anyone = fmean(cost for costs in self._costs.values() for cost in costs)
            known = {name: fmean(costs) for name, costs in self._costs.items()}
            return sum(left * known.get(config.method.name, anyone) for config, left in self._left.items()) / at_once
        if self._computed >= FIRST:
            return sum(self._left.values()) * (perf_counter() - self._began) / self._computed
        return None
