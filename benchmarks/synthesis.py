"""How fast the synthesis is, as ratios within one run: ``python -m benchmarks.synthesis``.

The reference job: 1 000 rows retrace the collected models of the census task, a 54-32-2 perceptron (1 826 parameters),
five training steps per iteration, one thread. Every contender is timed in turn, cycle after cycle, so that what else
the machine does hits all alike; ratios are taken within a cycle. The floor is the matrix products of an iteration and
nothing else. The evaluation before and after the search is left out of the figures per iteration.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from statistics import median, quantiles
from time import perf_counter, process_time

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from equfl.aggregation.mean import Mean
from equfl.core.arrays import Updates
from equfl.core.protocol import RoundContext
from equfl.core.random import Seed
from equfl.core.vector import Network
from equfl.data.base import Federation
from equfl.data.simulated_census import SimulatedCensus
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.methods.fedavg import FedAvg
from equfl.models.mlp import MLP
from equfl.simulation.engines.batched import Batched
from equfl.simulation.loop import simulate
from equfl.synthesis.base import Synthesis
from equfl.synthesis.faithful_matching import FaithfulMatching
from equfl.synthesis.trajectory_matching import TrajectoryMatching
from equfl.training.sgd import SGD

ROWS, STEPS, FEATURES, HIDDEN, CLASSES = 1000, 5, 54, 32, 2
COLLECTED, SHORT, LONG = 20, 5, 45

Job = Callable[[], object]


def collected(data: Federation) -> tuple[Updates, RoundContext]:
    """The models that a server has sent out, and the context of the round that synthesises from them."""
    training = SGD()
    rounds = simulate(
        data,
        method=FedAvg(),
        target=EqualizedOdds(),
        notions=[],
        model=MLP((HIDDEN,)),
        training=training,
        aggregation=Mean(),
        engine=Batched(),
        rounds=COLLECTED,
        evaluate_every=COLLECTED,
    )
    models = torch.stack([state.vector for _, state in rounds])
    context = RoundContext(
        round=COLLECTED + 1,
        rounds=2 * COLLECTED,
        learning_rate=training.learning_rate,
        network=MLP((HIDDEN,)).network(data.schema.shape, CLASSES),
        schema=data.schema,
        aggregate=lambda updates, shares: shares @ updates,
        vector=models[-1],
        generator=lambda purpose: Seed(0).generator(purpose),
        target=EqualizedOdds(),
        local_steps=sum(training.steps(size) for size in data.train.sizes) / len(data.train),
    )
    return models, context


def searching(synthesis: Synthesis, models: Updates, context: RoundContext) -> Callable[[int], Job]:
    """The synthesis with so many iterations."""
    return lambda iterations: lambda: replace(synthesis, iterations=iterations)(models, context)  # type: ignore[call-arg]


def floor() -> Callable[[int], Job]:
    """Per training step the six products of rows, inputs and hidden units that no way around them is known to avoid."""
    rows, weights, hidden = torch.randn(FEATURES, ROWS), torch.randn(HIDDEN, FEATURES), torch.randn(HIDDEN, ROWS)
    shapes = [(weights, rows)] * 2 + [(hidden, rows.T)] * 2 + [(weights.T, hidden)] * 2
    outs = [torch.empty(left.shape[0], right.shape[1]) for left, right in shapes]

    def of(iterations: int) -> Job:
        def products() -> None:
            with torch.inference_mode():
                for _ in range(iterations * STEPS):
                    for (left, right), out in zip(shapes, outs, strict=True):
                        torch.mm(left, right, out=out)

        return products

    return of


def seconds(job: Job) -> float:
    began = perf_counter()
    job()
    return perf_counter() - began


def per_iteration(job: Callable[[int], Job]) -> float:
    """Milliseconds: a long search less a short one, so that what they have in common does not count."""
    return (seconds(job(SHORT + LONG)) - seconds(job(SHORT))) / LONG * 1e3


def spread(values: list[float], digits: int) -> str:
    low, middle, high = quantiles(values, n=4)
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def compared(models: Updates, context: RoundContext, cycles: int) -> Table:
    """Every way to the gradient, and both searches as they are."""
    plain = replace(context, network=Network(context.network.module))
    faithful = FaithfulMatching(samples=ROWS, inner_steps=STEPS)
    contenders = {
        "faithful, all steps by autograd": searching(replace(faithful, gradient="unrolled"), models, plain),
        "faithful, step by step by autograd": searching(replace(faithful, gradient="stepwise"), models, plain),
        "faithful, gradient by hand, unrolled": searching(replace(faithful, gradient="unrolled"), models, context),
        "faithful, all by hand (default)": searching(faithful, models, context),
        "faithful, all by hand, tesla": searching(replace(faithful, gradient="tesla"), models, context),
        "to the letter, all by hand (default)": searching(TrajectoryMatching(samples=ROWS), models, context),
        "floor": floor(),
    }
    first = next(iter(contenders))
    for job in contenders.values():
        per_iteration(job)
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in track(range(cycles), description="cycles", transient=True):
        for name, job in contenders.items():
            taken[name].append(per_iteration(job))
    table = Table(
        "", "times the first", "% of the floor", "ms", title=f"An iteration: median (quartiles), {cycles} cycles"
    )
    for name, own in taken.items():
        speed = [base / value for base, value in zip(taken[first], own, strict=True)]
        share = [100 * base / value for base, value in zip(taken["floor"], own, strict=True)]
        table.add_row(name, spread(speed, 2), spread(share, 0), spread(own, 2))
    return table


def whole(models: Updates, context: RoundContext, cycles: int) -> Table:
    """What a user waits for: 1 000 iterations with everything around them."""
    title = f"1 000 iterations, start to end, {cycles} cycles"
    table = Table("", "s, best", "s, median", "s of the processor, best", title=title)
    jobs = {"faithful_matching": FaithfulMatching(), "trajectory_matching": TrajectoryMatching()}
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    busy: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in track(range(cycles), description="whole", transient=True):
        for name, synthesis in jobs.items():
            began = process_time()
            taken[name].append(seconds(searching(synthesis, models, context)(1000)))
            busy[name].append(process_time() - began)
    for name, own in taken.items():
        table.add_row(name, f"{min(own):.2f}", f"{median(own):.2f}", f"{min(busy[name]):.2f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--whole", type=int, default=3, help="cycles of 1 000 iterations")
    options = parser.parse_args()
    torch.set_num_threads(1)
    screen = Console()
    models, context = collected(SimulatedCensus().load())
    screen.print(compared(models, context, options.cycles))
    screen.print(whole(models, context, options.whole))


if __name__ == "__main__":
    main()
