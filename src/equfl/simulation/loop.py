"""The federation, round by round: the reference of how the parts meet."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

import torch

from equfl.aggregation.base import Aggregation, Tally
from equfl.core.errors import CohortError
from equfl.core.gathering import gather
from equfl.core.protocol import Diagnostics, RoundContext, RoundRecord, ServerState
from equfl.core.random import Seed
from equfl.core.secure_sum import summed
from equfl.core.vector import Network
from equfl.data.base import Federation, Progress
from equfl.fairness.base import Notion
from equfl.fairness.score import score
from equfl.methods.base import Method, Tensors, changes, check_pair, check_sums, takes_real_rows
from equfl.models.base import Model
from equfl.simulation.clientside import predicted, prepared, shown, surveyed
from equfl.simulation.engines.base import Clients, Engine
from equfl.training.base import Training

PATIENCE = 10
"""How many rounds in a row may come to nothing before the run is given up."""


def simulate(
    federation: Federation,
    *,
    method: Method,
    target: Notion,
    notions: Sequence[Notion],
    model: Model,
    training: Training,
    aggregation: Aggregation,
    engine: Engine,
    rounds: int,
    seed: int = 0,
    participation: float = 1.0,
    secure_sum: bool = False,
    evaluate_every: int = 1,
    state: ServerState | None = None,
    progress: Progress = lambda task, done, total: None,
) -> Iterator[tuple[RoundRecord, ServerState]]:
    """Run the rounds after ``state`` (default: the random start) and yield each one's record and state.

    The loop calls nobody back and keeps nothing: storing, printing and stopping are the caller's, who may go on from
    any state that was yielded.

    A participant whose update is not finite is left out of its round. A round in which no update can be used leaves the
    model as it is; so many of them in a row that nothing will come any more are an error.

    With ``secure_sum`` the server is given the sum over the participants, and nothing of any single one. Who would send
    what is not finite knows it, and stays out of the sum.
    """
    check_pair(method, aggregation)
    method.check(target)
    if secure_sum:
        check_sums(method, aggregation)
    seeds = Seed(seed)
    network = model.network(federation.schema.shape, len(federation.schema.classes))
    totals = surveyed(method, federation.train)
    state = state or start(model, network, seeds, totals, device=federation.train.pooled.inputs.device)
    shards, test = prepared(method, federation.train, totals), shown(method, federation, totals)
    clients = Clients(shards, network, training, method, seeds, target)
    train = engine.load(clients)
    steps = sum(training.steps(size) for size in shards.sizes) / len(shards)
    aggregation.check(len(participants(len(shards), participation, seeds.generator("participants"))), network)
    one_group = {client for client, samples in enumerate(federation.train) if len(samples.groups.unique()) < 2}
    no_rows = {*range(federation.train.pooled.group_count)} - {*federation.train.pooled.groups.unique().tolist()}

    while state.round < rounds:
        number = state.round + 1
        ids = participants(len(shards), participation, seeds.generator("participants", round=number))
        tally = Tally(aggregation, ids)
        context = RoundContext(
            round=number,
            rounds=rounds,
            learning_rate=training.learning_rate,
            network=network,
            schema=federation.schema,
            aggregate=lambda updates, shares: tally.apply(updates, shares, context),  # noqa: B023 (this round only)
            vector=state.vector,
            generator=partial(seeds.generator, round=number),
            buffers=state.buffers,
            target=target,
            local_steps=steps,
            real_rows=federation.train if takes_real_rows(method) else None,
            progress=progress,
        )
        began = perf_counter()
        instructions = method.instruct(state, context)
        answers = train(state, ids, instructions)
        trained = perf_counter()
        cohort = gather(
            state,
            ids,
            answers.vectors,
            [shards.sizes[client] for client in ids],
            learning_rate=training.learning_rate,
            buffers=answers.buffers,
            reports=_reports(clients, state, ids, instructions),
        )
        if secure_sum and cohort.ids:
            cohort = summed(cohort, sent=state.buffers)
        tally.usable = cohort.ids
        diagnostics: Diagnostics = {}
        if cohort.ids:
            state, diagnostics = method.step(state, cohort, context)
        state = replace(state, round=number, idle=0 if tally.accepted else state.idle + 1)
        _demand_progress(state, tally, training)
        _demand_finite(state, training)
        stepped = perf_counter()
        evaluation = {}
        if number % evaluate_every == 0 or number == rounds:
            evaluation = score(predicted(method, network, state, test.pooled), federation.test, notions)
        seconds = {"clients": trained - began, "server": stepped - trained, "evaluation": perf_counter() - stepped}
        told = _counted("one_group", one_group.intersection(ids)) | _counted("groups_without_rows", no_rows)
        told |= tally.numbers
        yield RoundRecord(number, len(ids), evaluation, diagnostics, told, tally.rejected, seconds), state


def start(
    model: Model, network: Network, seeds: Seed, totals: Tensors | None = None, *, device: torch.device | str = "cpu"
) -> ServerState:
    """The state before the first round: the model's random start, the paper's w^1, and what the survey found."""
    vector, buffers = model.initial(network, seeds.generator("initial model"))
    return ServerState(
        0,
        vector.to(device),
        {name: value.to(device) for name, value in buffers.items()},
        {f"survey/{name}": value.to(device) for name, value in (totals or {}).items()},
    )


def participants(clients: int, participation: float, generator: torch.Generator) -> tuple[int, ...]:
    """The clients of a round, in order: everybody, or a random share of at least one."""
    if participation >= 1:
        return tuple(range(clients))
    chosen = torch.randperm(clients, generator=generator)[: max(1, round(participation * clients))]
    return tuple(sorted(chosen.tolist()))


def _counted(name: str, found: Collection[int]) -> dict[str, float]:
    return {name: float(len(found))} if found else {}


def _demand_progress(state: ServerState, tally: Tally, training: Training) -> None:
    if state.idle < PATIENCE:
        return
    diverged = tally.numbers.get("not_finite", 0)
    raise CohortError(
        f"no update could be used in {PATIENCE} rounds in a row: in round {state.round}, {diverged:.0f} of "
        f"{len(tally.participants)} were not finite and the rule {tally.rule} rejected the others",
        wanted="some updates that are finite and that the rule accepts",
        remedy=f"Lower training.learning_rate = {training.learning_rate:g} and look for extreme values in the data"
        if diverged
        else "Change the rule's settings, or choose another",
    )


def _demand_finite(state: ServerState, training: Training) -> None:
    if not torch.isfinite(state.vector).all():
        raise CohortError(
            f"the global model is no longer finite after round {state.round}",
            wanted="a training that does not diverge",
            remedy=f"Lower training.learning_rate = {training.learning_rate:g}, or look for extreme values in the data",
        )


def _reports(clients: Clients, state: ServerState, ids: Sequence[int], instructions: Tensors) -> Tensors:
    if not changes(clients.method, "report"):
        return {}
    reports = [
        clients.method.report(clients.network, state.vector, state.buffers, clients.shards[client], instructions)
        for client in ids
    ]
    return {name: torch.stack([report[name] for report in reports]) for name in reports[0]}
