"""How long the aggregation rules take: ``python -m benchmarks.rules``.

Each rule is given updates of 1 826 parameters (the paper's network), once of 51 clients and once of 5 100, on one and
on two threads, in turn, cycle after cycle. The median, the trimmed mean and Multi-Krum are compared with what one would
write down first.
"""

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from equfl.aggregation.base import Aggregation
from equfl.core.component import known
from equfl.core.protocol import RoundContext
from equfl.core.random import Seed
from equfl.core.schema import Column, Schema
from equfl.models.mlp import MLP

SHAPE, CLASSES, HIDDEN = (54,), ("no", "yes"), (32,)
FEW, MANY = 51, 5100
WITHIN = 1.0
"""Seconds that one aggregation of many updates may take."""
SLOW_WITH_MANY = ("deepsight",)
"""Runs every client's model and clusters by all pairs; it is timed with few clients only."""


def plain_median(updates: Tensor) -> Tensor:
    rows = updates.sort(dim=0).values
    return (rows[(len(rows) - 1) // 2] + rows[len(rows) // 2]) / 2


def plain_trimmed_mean(updates: Tensor) -> Tensor:
    drop = len(updates) // 10
    return updates.sort(dim=0).values[drop : len(updates) - drop].mean(dim=0)


def plain_multi_krum(updates: Tensor) -> Tensor:
    suspected = len(updates) // 10
    distances = torch.cdist(updates, updates).square()
    scores = distances.sort(dim=1).values[:, 1 : len(updates) - suspected - 1].sum(dim=1)
    return updates[scores.argsort()[: len(updates) - suspected]].mean(dim=0)


PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "median": plain_median,
    "trimmed_mean": plain_trimmed_mean,
    "multi_krum": plain_multi_krum,
}


def a_round() -> RoundContext:
    """The context of a round of the paper's network on a table."""
    network = MLP(HIDDEN).network(SHAPE, len(CLASSES))
    columns = tuple(Column(str(number), number) for number in range(*SHAPE))
    return RoundContext(
        round=1,
        rounds=100,
        learning_rate=0.1,
        network=network,
        schema=Schema(SHAPE, CLASSES, ("a", "b"), ("group",), columns),
        aggregate=lambda updates, shares: shares @ updates,
        vector=MLP(HIDDEN).initial(network, Seed(0).generator("start"))[0],
        generator=lambda purpose: Seed(0).generator(purpose),
    )


def contenders(clients: int, context: RoundContext) -> dict[tuple[str, str], Callable[[], object]]:
    """What is timed, by rule and by 'equfl' or 'plain'."""
    draws = Seed(0).generator("updates")
    updates = torch.randn(clients, context.network.layout.size, generator=draws)
    shares = torch.full((clients,), 1 / clients)
    found: dict[tuple[str, str], Callable[[], object]] = {}
    for name, cls in known(Aggregation).items():  # type: ignore[type-abstract]
        if clients > FEW and name in SLOW_WITH_MANY:
            continue
        found[name, "equfl"] = partial(cls(), updates, shares, context)
        if name in PLAIN:
            found[name, "plain"] = partial(PLAIN[name], updates)
    return found


def timed(clients: int, threads: int, cycles: int) -> dict[tuple[str, str], list[float]]:
    """Seconds of each contender in each cycle."""
    torch.set_num_threads(threads)
    every = contenders(clients, a_round())
    for one in every.values():
        one()
    taken: dict[tuple[str, str], list[float]] = {name: [] for name in every}
    for _ in range(cycles):
        for name, one in every.items():
            began = perf_counter()
            one()
            taken[name].append(perf_counter() - began)
    return taken


def table(clients: int, results: dict[int, dict[tuple[str, str], list[float]]]) -> Table:
    title = f"{clients} updates of {a_round().network.layout.size} parameters: best and median milliseconds"
    found = Table("rule", *(f"{threads} thread(s)" for threads in results), "times as fast as plain", title=title)
    for name, who in next(iter(results.values())):
        if who == "plain":
            continue
        cells = [[1e3 * value for value in taken[name, who]] for taken in results.values()]
        ratios = [
            median(slow / fast for slow, fast in zip(taken[name, "plain"], taken[name, "equfl"], strict=True))
            for taken in results.values()
            if (name, "plain") in taken
        ]
        found.add_row(
            name,
            *(f"{min(cell):.2f}  {median(cell):.2f}" for cell in cells),
            ", ".join(f"{ratio:.1f}" for ratio in ratios),
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=7)
    parser.add_argument("--clients", type=int, nargs="+", default=[FEW, MANY])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    screen = Console()
    for clients in options.clients:
        results = {threads: timed(clients, threads, options.cycles) for threads in options.threads}
        screen.print(table(clients, results))
        if clients == MANY:
            threads, taken = max(results.items())
            slowest = max(min(taken[name, "equfl"]) for name in PLAIN)
            verdict = "within" if slowest <= WITHIN else "NOT within"
            screen.print(
                f"Slowest of {', '.join(PLAIN)} on {threads} thread(s): {slowest:.2f} s, {verdict} {WITHIN:g} s."
            )


if __name__ == "__main__":
    main()
