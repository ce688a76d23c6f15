"""How fast the simulator is, as ratios within one run: ``make bench``.

The reference job: 51 clients with 1 000 rows of 54 numbers, a 54-32-2 perceptron, cross-entropy, SGD 0.1, batches of
64, one shuffled epoch per round, everybody takes part, FedAvg by sample count, no evaluation. Every contender is timed
in turn, cycle after cycle, so that what else the machine does hits all alike; ratios are taken within a cycle.
"""

import argparse
import ctypes
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor, nn

from equfl.aggregation.mean import Mean
from equfl.core.random import Seed
from equfl.core.samples import Samples, Shards
from equfl.core.schema import Schema
from equfl.data.base import Federation
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.methods.fedavg import FedAvg
from equfl.models.mlp import MLP
from equfl.simulation.engines._vmapped import TRACE_AFTER
from equfl.simulation.engines.base import Answers, Clients
from equfl.simulation.engines.batched import Batched
from equfl.simulation.loop import simulate, start
from equfl.training.sgd import SGD

CLIENTS, ROWS, FEATURES, HIDDEN, CLASSES, BATCH, RATE = 51, 1000, 54, 32, 2, 64, 0.1

Round = Callable[[], object]
"""One round of training: what is timed."""


def federation(clients: int, own: int) -> Federation:
    """Clients with so many random rows each: how long training takes does not depend on them."""
    draws = Seed(0).generator("benchmark")
    rows = clients * own
    samples = Samples(
        inputs=torch.empty(rows, FEATURES).normal_(generator=draws),
        labels=torch.empty(rows, dtype=torch.int64).random_(CLASSES, generator=draws),
        groups=torch.empty(rows, dtype=torch.int64).random_(2, generator=draws),
    )
    shards = Shards(samples, (own,) * clients)
    schema = Schema(shape=(FEATURES,), classes=("no", "yes"), groups=("a", "b"), sensitive=("group",))
    return Federation("benchmark", tuple(map(str, range(clients))), train=shards, test=shards, schema=schema)


def by_hand(data: Shards) -> Round:
    """The loop that a researcher writes without any library for it."""
    model = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    clients = [(samples.inputs, samples.labels) for samples in data]
    total = sum(len(inputs) for inputs, _ in clients)

    def round_() -> None:
        average = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
        for inputs, labels in clients:
            local = deepcopy(model)
            optimiser = torch.optim.SGD(local.parameters(), lr=RATE)
            order = torch.randperm(len(inputs))
            shuffled, answers = inputs[order], labels[order]
            for first in range(0, len(inputs), BATCH):
                optimiser.zero_grad()
                logits = local(shuffled[first : first + BATCH])
                nn.functional.cross_entropy(logits, answers[first : first + BATCH]).backward()
                optimiser.step()
            for name, value in local.state_dict().items():
                average[name] += value * (len(inputs) / total)
        model.load_state_dict(average)

    return round_


def simulated(data: Federation, engine: Batched) -> Round:
    """A round of ``equfl``, with everything around the engine."""
    rounds = simulate(
        data,
        method=FedAvg(),
        target=EqualizedOdds(),
        notions=[],
        model=MLP((HIDDEN,)),
        training=SGD(learning_rate=RATE, batch_size=BATCH),
        aggregation=Mean(),
        engine=engine,
        rounds=10**9,
        evaluate_every=10**9,
    )
    return lambda: next(rounds)


def floor(own: int) -> Round:
    """The matrix products of a round and nothing else, as batched products of their own shapes."""

    def products(rows: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        inputs, hidden = torch.randn(CLIENTS, rows, FEATURES), torch.randn(CLIENTS, rows, HIDDEN)
        logits = torch.randn(CLIENTS, rows, CLASSES)
        first, second = torch.randn(CLIENTS, FEATURES, HIDDEN), torch.randn(CLIENTS, HIDDEN, CLASSES)
        yield inputs, first, hidden.clone()
        yield hidden, second, logits.clone()
        yield logits, second.mT, hidden.clone()
        yield hidden.mT, logits, second.clone()
        yield inputs.mT, hidden, first.clone()

    whole, rest = divmod(own, BATCH)
    with torch.inference_mode():
        steps = [list(products(BATCH))] * whole + [list(products(rest))] * bool(rest)

    def round_() -> None:
        with torch.inference_mode():
            for step in steps:
                for left, right, out in step:
                    torch.bmm(left, right, out=out)

    return round_


def milliseconds(round_: Round, repeats: int) -> float:
    began = perf_counter()
    for _ in range(repeats):
        round_()
    return (perf_counter() - began) / repeats * 1e3


def compare(data: Federation, threads: int, cycles: int) -> dict[str, list[float]]:
    """Milliseconds per round, cycle by cycle."""
    torch.set_num_threads(threads)
    contenders = {
        "hand-written loop": (by_hand(data.train), 1),
        "rung vmap": (simulated(data, Batched("vmap")), 3),
        "rung packed": (simulated(data, Batched("packed")), 5),
        "floor": (floor(data.train.sizes[0]), 5),
    }
    for round_, repeats in contenders.values():
        milliseconds(round_, 2 * repeats)
    # 'vmap' records its steps when they have come back often enough: the last batch once per round.
    milliseconds(contenders["rung vmap"][0], TRACE_AFTER)
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in track(range(cycles), description=f"{threads} thread(s)", transient=True):
        for name, (round_, repeats) in contenders.items():
            taken[name].append(milliseconds(round_, repeats))
    return taken


def spread(values: list[float], digits: int) -> str:
    low, middle, high = quantiles(values, n=4)
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def compared(results: dict[int, dict[str, list[float]]], cycles: int) -> Table:
    title = f"A round of the reference job: median (quartiles) of {cycles} interleaved cycles"
    table = Table("threads", "", "times the loop", "% of the floor", "ms", title=title)
    for threads, taken in results.items():
        for name, own in taken.items():
            loop = [base / value for base, value in zip(taken["hand-written loop"], own, strict=True)]
            share = [100 * base / value for base, value in zip(taken["floor"], own, strict=True)]
            table.add_row(str(threads), name, spread(loop, 1), spread(share, 0), spread(own, 2))
        table.add_section()
    return table


def scale(clients: int, memory_mb: int, own: int, rounds: int = 7) -> dict[str, float]:
    """Milliseconds per client of whole rounds, and the peak of the engine's memory (MB) beside rows and answers.

    Wants a fresh process.
    """
    torch.set_num_threads(1)
    engine = Batched("packed", memory_mb)
    loaded(federation(CLIENTS, own), engine)()  # loads what is loaded once
    data = federation(clients, own)
    ctypes.CDLL(None).malloc_trim(0)  # what was freed is given back, so that nobody works in it unseen
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = resident("VmRSS")
    train = loaded(data, engine)
    answers = train().vectors.nbytes / 2**20
    peak = resident("VmHWM") - before - answers
    del train
    round_ = simulated(data, engine)
    round_()
    times = [milliseconds(round_, 1) for _ in range(rounds)]
    return {"ms": median(times) / clients, "peak": peak}


def loaded(data: Federation, engine: Batched) -> Callable[[], Answers]:
    """The training of a round alone."""
    model = MLP((HIDDEN,))
    network = model.network((FEATURES,), CLASSES)
    state = start(model, network, Seed(0))
    train = engine.load(Clients(data.train, network, SGD(RATE, BATCH), FedAvg(), Seed(0), EqualizedOdds()))
    return lambda: train(state, range(len(data.train)), {})


def resident(field: str) -> float:
    """Megabytes of this process in memory: now (``VmRSS``) or at most (``VmHWM``)."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[field].split()[0]) / 1024


def scaled(cases: Sequence[tuple[int, int]], own: int) -> Table:
    table = Table("clients", "ms per client", "peak memory, MB", "budget, MB", title="Rung packed, one thread")
    for clients, memory_mb in track(cases, description="clients", transient=True):
        command = [
            sys.executable,
            "-m",
            "benchmarks.engines",
            "--rows",
            str(own),
            "--scale",
            str(clients),
            str(memory_mb),
        ]
        one = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        table.add_row(f"{clients}", f"{one['ms']:.3f}", f"{one['peak']:.0f}", f"{memory_mb}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=20, help="how often each contender is timed")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", type=int, default=ROWS, help="of each client")
    parser.add_argument("--most", type=int, default=5100, help="clients in the largest federation, at least 51")
    parser.add_argument("--scale", type=int, nargs=2, metavar=("CLIENTS", "MB"), help="only this, as JSON")
    options = parser.parse_args()
    if options.scale:
        print(json.dumps(scale(*options.scale, options.rows)))
        return
    data = federation(CLIENTS, options.rows)
    screen = Console()
    results = {threads: compare(data, threads, options.cycles) for threads in options.threads}
    screen.print(compared(results, options.cycles))
    sizes = [clients for clients in (51, 510, 5100) if clients <= options.most]
    screen.print(scaled([*((clients, 256) for clients in sizes), (sizes[-1], 64)], options.rows))


if __name__ == "__main__":
    main()
