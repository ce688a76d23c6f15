"""Many runs as a table: per method mean and spread over the seeds, the change against FedAvg, and who beats whom."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt
from statistics import fmean, stdev
from typing import Any

from equfl.core.disclosure import Disclosure
from equfl.methods.base import Method
from equfl.runs.grid import Finished

Number = Callable[[Mapping[str, Any]], float | None]
"""One number out of a run's result."""


@dataclass(frozen=True)
class Spread:
    """One number for each of several seeds."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.values) if self.values else nan

    @property
    def deviation(self) -> float:
        """The standard deviation over the seeds; NaN for a single one."""
        return stdev(self.values) if len(self.values) > 1 else nan

    @property
    def standard_error(self) -> float:
        return self.deviation / sqrt(len(self.values)) if self.values else nan

    @property
    def beyond_chance(self) -> bool:
        """Whether the mean is more than two standard errors from zero; never for a single seed."""
        return abs(self.mean) > 2 * self.standard_error


@dataclass(frozen=True)
class Standing:
    """What one method came to."""

    method: Method
    results: Mapping[int, Mapping[str, Any]]
    """Seed -> what ``result.json`` says, for the seeds that are finished."""
    label: str = ""
    """What it is called in tables."""

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def privacy(self) -> Mapping[str, Any] | None:
        """What is guaranteed, for the seed where it is weakest; ``None`` where nothing is promised."""
        found = [result["privacy"] for result in self.results.values() if result.get("privacy")]
        return max(found, key=lambda one: inf if one["epsilon"] is None else one["epsilon"], default=None)

    @property
    def also_leaves(self) -> tuple[Disclosure, ...]:
        """What a client sends beside what it sends in FedAvg."""
        return tuple(one for one in self.method.leaves() if one not in Method.leaves(self.method))

    @property
    def accuracy(self) -> Spread:
        return self.over_seeds(_accuracy)

    def bias(self, notion: str, scope: str = "pooled") -> Spread:
        """Over the seeds in which the rows could show it."""
        return self.over_seeds(lambda result: _bias(result, notion, scope))

    def over_seeds(self, number: Number) -> Spread:
        """A number of each result that has it."""
        return Spread(tuple(value for result in self.results.values() if (value := number(result)) is not None))

    def change(self, other: "Standing", number: Number) -> Spread:
        """Seed by seed, this method's number minus the other's: what both owe to the seed falls out."""
        pairs = [
            (number(result), number(other.results[seed]))
            for seed, result in self.results.items()
            if seed in other.results
        ]
        return Spread(tuple(mine - its for mine, its in pairs if mine is not None and its is not None))

    def accuracy_change(self, other: "Standing") -> Spread:
        return self.change(other, _accuracy)

    def bias_change(self, other: "Standing", notion: str) -> Spread:
        return self.change(other, lambda result: _bias(result, notion, "pooled"))

    def dominates(self, other: "Standing", notion: str) -> bool:
        """Whether it is at once more accurate and less biased, both beyond two standard errors."""
        accuracy, bias = self.accuracy_change(other), self.bias_change(other, notion)
        return accuracy.mean > 0 > bias.mean and accuracy.beyond_chance and bias.beyond_chance


def standings(finished: Iterable[Finished]) -> list[Standing]:
    """One per method, in the order in which they come; settings are named where the method's name is not enough."""
    found: dict[str, tuple[Method, dict[int, Mapping[str, Any]]]] = {}
    for run in finished:
        _, results = found.setdefault(str(run.config.method), (run.config.method, {}))
        results[run.config.seed] = run.result
    names = Counter(method.name for method, _ in found.values())
    return [
        Standing(method, dict(sorted(results.items())), method.name if names[method.name] == 1 else label)
        for label, (method, results) in found.items()
    ]


def on_the_frontier(rows: Sequence[Standing], notion: str) -> list[Standing]:
    """Those that no other one beats by their means, from the least biased on."""
    shown = [row for row in rows if row.bias(notion).values]
    best = [row for row in shown if not any(_ahead(other, row, notion) for other in shown)]
    return sorted(best, key=lambda row: row.bias(notion).mean)


def _ahead(a: Standing, b: Standing, notion: str) -> bool:
    accuracy = a.accuracy.mean - b.accuracy.mean
    bias = a.bias(notion).mean - b.bias(notion).mean
    return accuracy >= 0 >= bias and (accuracy > 0 or bias < 0)


def _accuracy(result: Mapping[str, Any]) -> float | None:
    return result["accuracy"]


def _bias(result: Mapping[str, Any], notion: str, scope: str) -> float | None:
    return result["bias"].get(notion, {}).get(scope)
