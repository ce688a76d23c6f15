"""What a run and its baseline share: the federation, the notions, the device, and who looks on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import torch

from equfl.config.schema import RunConfig
from equfl.core.arrays import Predictions
from equfl.core.component import known
from equfl.core.errors import DataError
from equfl.core.protocol import RoundRecord, ServerState
from equfl.core.random import Seed
from equfl.core.samples import Shards
from equfl.data.base import Federation
from equfl.fairness.audit import Audit, audit, divided
from equfl.fairness.base import GroupNotion, Notion
from equfl.fairness.comparison import compare
from equfl.fairness.score import score
from equfl.runs.result import Run, seconds
from equfl.runs.stopwatch import Stopwatch
from equfl.runs.store import Store
from equfl.runs.watcher import Watcher
from equfl.simulation.clientside import predicted, shown, surveyed
from equfl.simulation.guarantee import guarantee
from equfl.simulation.loop import simulate
from equfl.simulation.transfer import transfer

Records = tuple[RoundRecord, ...]
HandOver = Callable[[Records, ServerState], None]


@dataclass(frozen=True)
class Laboratory:
    """Loaded once, used for every config that differs in its method only."""

    federation: Federation
    notions: Sequence[Notion]
    """All there are; those that the rows cannot show are NaN in the audit, and say why."""
    device: torch.device
    watcher: Watcher
    loading: float
    """Seconds that the data took."""

    @classmethod
    def equipped(
        cls, federation: Federation, target: Notion, device: torch.device, watcher: Watcher, *, loading: float
    ) -> "Laboratory":
        """With every notion there is, the target as it was chosen among them."""
        every = [notion() for notion in known(Notion).values()]  # type: ignore[type-abstract]
        single = [notion for notion in every if notion.parts() == (notion,)]
        notions = {notion.name: notion for notion in (*single, *target.parts())}
        return cls(federation.to(device), tuple(notions.values()), device, watcher, loading)

    def run(self, config: RunConfig, store: Store, hand_over: HandOver = lambda records, state: None) -> Run:
        """The config's rounds, those that are safe not once more, and the audit of the model they end with."""
        model = config.model.network(self.federation.schema.shape, len(self.federation.schema.classes))
        # Before the rounds, for it may ask for a package that is not installed.
        privacy = guarantee(
            self.federation.train,
            method=config.method,
            network=model,
            training=config.training,
            rounds=config.rounds,
            seed=config.seed,
            participation=config.participation,
        )
        records, state = self._trained(config, store, hand_over)
        began = perf_counter()
        test = shown(config.method, self.federation, surveyed(config.method, self.federation.train))
        predictions = predicted(config.method, model, state, test.pooled)
        audits = self._audits(predictions, Seed(config.seed))
        return Run(
            config=config,
            federation=self.federation,
            records=records,
            state=state,
            predictions=predictions,
            audits=audits,
            seconds=seconds(records, data=self.loading, audit=perf_counter() - began),
            folder=store.path,
            privacy=privacy,
        )

    def compared(self, run: Run, baseline: Run) -> Run:
        """The run with its baseline, what is different, and how much of it the server's rows have carried over."""
        began = perf_counter()
        change = compare(
            baseline.predictions,
            run.predictions,
            self.federation.test,
            self.notions,
            generator=Seed(run.config.seed).generator("comparison"),
        )
        found = transfer(
            run.config.model.network(self.federation.schema.shape, len(self.federation.schema.classes)),
            baseline.state,
            run.state,
            self.federation.train.pooled,
            run.config.target,
            self.federation.schema,
            Seed(run.config.seed).generator("transfer"),
        )
        spent = {**run.seconds, "audit": run.seconds["audit"] + perf_counter() - began}
        return replace(run, baseline=baseline, change=change, transfer=found, seconds=spent)

    def _trained(self, config: RunConfig, store: Store, hand_over: HandOver) -> tuple[Records, ServerState]:
        records, state = store.resume()
        watch = Stopwatch(self.watcher.working)
        rounds = simulate(
            self.federation,
            method=config.method,
            target=config.target,
            notions=[
                notion for notion in self.notions if self._can_show(notion, needed=notion in config.target.parts())
            ],
            model=config.model,
            training=config.training,
            aggregation=config.aggregation,
            engine=config.engine,
            rounds=config.rounds,
            seed=config.seed,
            participation=config.participation,
            secure_sum=config.secure_sum,
            evaluate_every=config.evaluate_every,
            state=None if state is None else on_device(state, self.device),
            progress=watch.working,
        )
        for record, state in rounds:
            records = (*records, watch.stamped(record))
            # Before the round is saved: once it is, nobody comes by here again.
            hand_over(records, state)
            with watch.saving():
                store.save(records[-1], state)
            self.watcher.round(config, records[-1])
        assert state is not None, "a run has at least one round"
        return records, state

    def _can_show(self, notion: Notion, *, needed: bool) -> bool:
        test = self.federation.test
        try:
            score(torch.zeros_like(test.pooled.labels), test, [notion])
        except DataError:
            if needed:
                raise
            return False
        return True

    def _audits(self, predictions: Predictions, seeds: Seed) -> dict[str, Audit]:
        schema, test = self.federation.schema, self.federation.test

        def audited(name: str, rows: Shards, notions: Sequence[Notion], groups: Sequence[str]) -> Audit:
            return audit(predictions, rows, notions, group_names=groups, generator=seeds.generator(f"audit by {name}"))

        together = " x ".join(schema.sensitive)
        # What does not look at groups is the same whichever way the rows are divided.
        dividing = [notion for notion in self.notions if isinstance(notion, GroupNotion)]
        return {together: audited(together, test, self.notions, schema.groups)} | {
            name: audited(name, divided(test, alone.groups, group_count=len(alone.names)), dividing, alone.names)
            for name, alone in self.federation.groupings.items()
        }


def on_device(state: ServerState, device: torch.device) -> ServerState:
    """The state as it was read, where the rest is."""
    return replace(
        state,
        vector=state.vector.to(device),
        buffers={name: value.to(device) for name, value in state.buffers.items()},
        memory={name: value.to(device) for name, value in state.memory.items()},
    )
