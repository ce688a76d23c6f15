"""The same federation by the simulator, by Flower in one process, and by Flower's simulation with Ray.

``python -m benchmarks.flower`` runs rounds of ``income-sex`` (51 parties, no evaluation) several times, each time
with the same method, seeds and batches, and prints how far the models are apart and how long a round took. It needs
the extra 'flower', ``flwr[simulation]``, and the census data that ``EQUFL_DATA`` names.
"""

import argparse
import contextlib
import json
import logging
import os
import tempfile
from collections.abc import Iterable
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from time import perf_counter

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from equfl.aggregation.mean import Mean
from equfl.core.random import Seed
from equfl.data.base import Federation
from equfl.data.income import Income
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.flower import EquFLStrategy, InlineGrid, SimulatedClients, feedback_mod
from equfl.methods.equfl_solve import EquFLSolve
from equfl.models.mlp import MLP
from equfl.simulation.engines.batched import Batched
from equfl.simulation.loop import simulate, start
from equfl.synthesis.trajectory_matching import TrajectoryMatching
from equfl.training.sgd import SGD

MODEL, TRAINING, TARGET = MLP(), SGD(), EqualizedOdds()
METHOD = EquFLSolve(settle=2, synthesis=TrajectoryMatching(samples=64, iterations=20, match_steps=1))
"""Calibrates in the last two rounds. A small synthesis, because what is compared is the way to the model and not the
model; and no counts, because one decision that flips is a person, however small the difference that flipped it."""


@cache
def federation() -> Federation:
    """The parties' rows; each of Ray's workers reads them once."""
    torch.set_num_threads(1)
    return Income(sensitive=("SEX",)).load()


@cache
def network():
    """The model as a function."""
    return MODEL.network(federation().schema.shape, 2)


RAY = "Flower's simulation with Ray"


def processor() -> float:
    """Processor seconds that this process and all that descend from it have used; Ray's workers do. Linux only."""
    parents, used = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            process = int(entry.parent.name)
            parents[process], used[process] = int(fields[1]), int(fields[11]) + int(fields[12])
    family = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(used[process] for process in family) / os.sysconf("SC_CLK_TCK")


class Timed(EquFLStrategy):
    """Notes when each round begins, by the clock and by what was spent until then."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        # To look at all processes takes as long as half a round in one process, so that is left out of either figure.
        ended, spent = perf_counter(), processor()
        self.notes = [*getattr(self, "notes", []), (ended, spent, perf_counter(), processor())]
        return super().configure_train(server_round, arrays, config, grid)


def trained(grid: Grid, rounds: int) -> tuple[torch.Tensor, list[list[float]]]:
    """The strategy's last model, and the seconds, by the clock and by the processor, of the rounds that only train."""
    parties = federation().train
    strategy = Timed(
        FedAvg(fraction_evaluate=0.0, min_train_nodes=len(parties), min_available_nodes=len(parties)),
        method=METHOD,
        model=network(),
        schema=federation().schema,
        target=TARGET,
        learning_rate=TRAINING.learning_rate,
        local_steps=sum(TRAINING.steps(size) for size in parties.sizes) / len(parties),
    )
    initial = ArrayRecord(network().layout.unflatten(start(MODEL, network(), Seed(0)).vector))
    result = strategy.start(grid, initial, num_rounds=rounds)
    if any(record["equfl/left_out"] for record in result.train_metrics_clientapp.values()):
        raise SystemExit("some clients failed, so there is nothing to compare")
    seconds = [[later[0] - earlier[2], later[1] - earlier[3]] for earlier, later in pairwise(strategy.notes)]
    # The first round starts the workers, and in the last ones the server calibrates.
    return network().layout.flatten(result.arrays.to_torch_state_dict()), seconds[1 : rounds - METHOD.settle - 1]


client = ClientApp(
    mods=[
        feedback_mod(
            method=METHOD,
            model=lambda context: network(),
            rows=lambda context: federation().train[int(context.node_config["partition-id"])],
        )
    ]
)


@client.train()
def train(message: Message, context: Context) -> Message:
    """A client that draws its batches as in the simulator."""
    party = int(context.node_config["partition-id"])
    samples = federation().train[party]
    arrays = message.content["arrays"]
    vector, _ = TRAINING.train(
        network().layout.flatten(arrays.to_torch_state_dict()),
        {},
        samples,
        network=network(),
        objective=lambda logits, batch: METHOD.objective(logits, batch, {}, TARGET),
        generator=partial(Seed(0).generator, round=int(message.content["config"]["server-round"]), client=party),
    )
    fresh = ArrayRecord(network().layout.unflatten(vector))
    metrics = MetricRecord({"num-examples": len(samples)})
    return Message(RecordDict({"arrays": fresh, "metrics": metrics}), reply_to=message)


def by_the_simulator(rounds: int) -> torch.Tensor:
    """The reference."""
    *_, (_, state) = simulate(
        federation(),
        method=METHOD,
        target=TARGET,
        notions=[],
        model=MODEL,
        training=TRAINING,
        aggregation=Mean(),
        engine=Batched(),
        rounds=rounds,
    )
    return state.vector


def by_ray(rounds: int, cores: int) -> tuple[torch.Tensor, list[list[float]]]:
    """Flower's own simulation; what comes out of its server's thread goes through a file."""
    from flwr.simulation import run_simulation

    server = ServerApp()
    with tempfile.TemporaryDirectory() as folder:

        @server.main()
        def main(grid: Grid, context: Context) -> None:
            vector, seconds = trained(grid, rounds)
            (Path(folder) / "result.json").write_text(json.dumps([vector.tolist(), seconds]))

        run_simulation(
            server,
            client,
            num_supernodes=len(federation().train),
            backend_config={"init_args": {"num_cpus": cores}, "client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
        )
        vector, seconds = json.loads((Path(folder) / "result.json").read_text())
    return torch.tensor(vector), seconds


def main() -> None:
    """Run all of them in turn, and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--cores", type=int, default=2, help="for Ray's workers")
    chosen = options.parse_args()
    os.environ.update(FLWR_TELEMETRY_ENABLED="0", FLWR_DISABLE_UPDATE_CHECK="1")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    logging.getLogger("flwr").setLevel(logging.WARNING)
    simulated = by_the_simulator(chosen.rounds)
    inline = InlineGrid(SimulatedClients(federation(), model=MODEL, training=TRAINING, method=METHOD))
    contenders = {
        "InlineGrid, simulated clients": trained(inline, chosen.rounds),
        RAY: by_ray(chosen.rounds, chosen.cores),
        "InlineGrid, simulated clients, again": trained(inline, chosen.rounds),
        "InlineGrid, the same ClientApp": trained(InlineGrid(client, nodes=len(federation().train)), chosen.rounds),
    }
    figures = {name: summary(seconds) for name, (_, seconds) in contenders.items()}
    columns = f"{'best':>8}{'median':>8}{'processor':>10}   {'and how many times Ray':>24}   apart"
    print(f"{'milliseconds a round':38}{columns}")
    for name, (vector, _) in contenders.items():
        mine = zip(figures[name], (8, 8, 10), strict=True)
        ours = "".join(f"{1000 * value:{width}.1f}" for value, width in mine)
        faster = "".join(f"{ray / value:8.1f}" for ray, value in zip(figures[RAY], figures[name], strict=True))
        print(f"{name:38}{ours}   {faster}   {(vector - simulated).abs().max().item():.1e}")


def summary(seconds: list[list[float]]) -> tuple[float, float, float]:
    """The best and the median round by the clock, and the mean round by the processor, whose own clock is coarse."""
    clock, spent = zip(*seconds, strict=True)
    return min(clock), median(clock), mean(spent)


if __name__ == "__main__":
    # Under its own name, so that Ray's workers find the client here.
    from benchmarks.flower import main as run

    run()
