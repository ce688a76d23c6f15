"""What every synthesis must do, today's and later ones: valid rows out of the collected models, and nothing else."""

from dataclasses import fields, replace

import pytest
import torch

from equfl.aggregation.mean import Mean
from equfl.core.component import known
from equfl.core.errors import CalibrationError
from equfl.core.protocol import RoundContext
from equfl.core.random import Seed
from equfl.core.samples import Samples, concatenate
from equfl.core.schema import Column, Schema
from equfl.data.toy import Toy
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.methods.base import takes_real_rows
from equfl.methods.equfl import EquFL
from equfl.methods.equfl_solve import EquFLSolve
from equfl.models.mlp import MLP
from equfl.simulation.engines.serial import Serial
from equfl.simulation.loop import simulate
from equfl.synthesis.base import Synthesis
from equfl.synthesis.faithful_matching import FaithfulMatching
from equfl.training.sgd import SGD

ROWS = 24
SMALL = {"samples": ROWS, "iterations": 4, "match_steps": 2, "gaps": (2,), "inner_steps": 2}

TABLE = Toy(clients=3).load().schema
IMAGES = Schema(shape=(1, 3, 3), classes=("0", "1", "2"), groups=("even", "odd"), sensitive=("parity",))
UNSEEN = Schema(
    shape=(2,),
    classes=("no", "yes"),
    groups=("a", "b", "c", "d", "e"),
    sensitive=("race",),
    columns=(Column("age", 0), Column("hours", 1)),
)
SCHEMAS = {"table": TABLE, "images": IMAGES, "five groups the model does not see": UNSEEN}


def small(cls: type[Synthesis]) -> Synthesis:
    """The synthesis as it is, but in no time."""
    own = {field.name for field in fields(cls)}
    nested = {"synthesis": FaithfulMatching(**{k: v for k, v in SMALL.items() if k != "match_steps"})}
    return cls(**{name: value for name, value in (SMALL | nested).items() if name in own})


EVERY = [small(cls) for cls in known(Synthesis).values()]


def real_rows(schema: Schema):
    """What three clients might have: rows of this shape with numbers for everything."""
    draws = Seed(3).generator("real rows")

    def client(size: int) -> Samples:
        return Samples(
            inputs=torch.randn(size, *schema.shape, generator=draws),
            labels=torch.randint(len(schema.classes), (size,), generator=draws),
            groups=torch.randint(len(schema.groups), (size,), generator=draws),
            classes=len(schema.classes),
            group_count=len(schema.groups),
        )

    return concatenate([client(size) for size in (20, 4, 30)])


def context_of(schema: Schema, seed: int = 0) -> RoundContext:
    network = MLP((4,)).network(schema.shape, len(schema.classes))
    return RoundContext(
        round=7,
        rounds=10,
        learning_rate=0.1,
        network=network,
        schema=schema,
        aggregate=lambda updates, shares: shares @ updates,
        vector=torch.zeros(network.layout.size),
        generator=lambda purpose: Seed(seed).generator(purpose),
        target=EqualizedOdds(),
        local_steps=4.0,
        real_rows=real_rows(schema),
    )


def trajectory(context: RoundContext):
    vector, _ = MLP((4,)).initial(context.network, Seed(1).generator("start"))
    steps = 0.1 * torch.randn(6, len(vector), generator=Seed(1).generator("steps"))
    return vector + steps.cumsum(dim=0)


@pytest.mark.parametrize("synthesis", EVERY, ids=lambda synthesis: synthesis.name)
class TestSynthesis:
    @pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
    def test_it_returns_rows_of_the_declared_shape_with_memberships_that_sum_to_one(self, synthesis, schema):
        context = context_of(schema)
        samples, told = synthesis(trajectory(context), context)
        assert samples.inputs.shape[1:] == schema.shape
        assert (samples.classes, samples.group_count) == (len(schema.classes), len(schema.groups))
        for weights, names in ((samples.label_weights(), schema.classes), (samples.group_weights(), schema.groups)):
            assert weights.shape == (len(samples), len(names))
            assert weights.min() >= 0
            torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(samples)))
        assert samples.inputs.isfinite().all()
        assert not samples.inputs.requires_grad
        assert not samples.labels.requires_grad
        assert all(isinstance(value, float) for value in told.values())

    def test_it_returns_as_many_rows_as_asked_for(self, synthesis):
        context = context_of(TABLE)
        samples, _ = synthesis(trajectory(context), context)
        assert len(samples) == (ROWS if synthesis.name != "oracle" else len(context.real_rows.pooled))

    def test_the_same_seed_gives_the_same_rows_and_another_seed_others(self, synthesis):
        context = context_of(TABLE)
        (first, told), (again, told_again) = (synthesis(trajectory(context), context) for _ in range(2))
        assert torch.equal(first.inputs, again.inputs)
        assert torch.equal(first.labels, again.labels)
        assert told == told_again
        other, _ = synthesis(trajectory(context), context_of(TABLE, seed=1))
        if synthesis.name != "oracle":
            assert not torch.equal(first.inputs, other.inputs)

    def test_it_leaves_the_collected_models_as_they_are(self, synthesis):
        context = context_of(TABLE)
        collected = trajectory(context)
        before = collected.clone()
        synthesis(collected, context)
        assert torch.equal(collected, before)

    def test_it_needs_real_rows_only_if_it_says_so(self, synthesis):
        context = replace(context_of(TABLE), real_rows=None)
        if takes_real_rows(EquFL(synthesis=synthesis)):
            with pytest.raises(CalibrationError, match="a real server has no such rows"):
                synthesis(trajectory(context), context)
        else:
            synthesis(trajectory(context), context)

    @pytest.mark.parametrize("method", [EquFL(), EquFLSolve(smooth=2)], ids=lambda method: method.name)
    def test_a_method_runs_with_it_and_counts_its_rows(self, synthesis, method):
        records, states = zip(*self._run(replace(method, synthesis=synthesis)), strict=True)
        assert states[-1].vector.isfinite().all()
        told = next(record.diagnostics for record in records if "synthesis/cells_without_rows" in record.diagnostics)
        rows = sum(value for name, value in told.items() if name.startswith("synthesis/rows/"))
        assert rows == pytest.approx(len(states[-1].memory["synthetic/inputs"]), rel=1e-4)
        assert told["synthesis/cells_without_rows"] == 0

    def test_only_a_control_is_given_the_clients_rows(self, synthesis):
        seen = []

        class Looking(EquFL):
            def step(self, state, cohort, context):
                seen.append(context.real_rows)
                return super().step(state, cohort, context)

        self._run(Looking(synthesis=synthesis))
        control = takes_real_rows(EquFL(synthesis=synthesis))
        assert all((rows is not None) == control for rows in seen)

    @staticmethod
    def _run(method):
        return list(
            simulate(
                Toy(clients=3, rows=40, spread=0.5).load(),
                method=method,
                target=DemographicParity(),
                notions=[DemographicParity()],
                model=MLP((4,)),
                training=SGD(batch_size=16),
                aggregation=Mean(),
                engine=Serial(),
                rounds=10,
            )
        )


def test_the_only_ones_that_take_real_rows_are_the_two_that_are_meant_to():
    assert [cls.name for cls in known(Synthesis).values() if cls.takes_real_rows] == ["oracle", "small_real"]


def test_every_control_says_that_it_is_one():
    controls = ("oracle", "small_real", "random_rows", "shuffled_labels")
    for name, cls in known(Synthesis).items():
        assert (cls.__doc__ or "").startswith("A control, no method: ") == (name in controls)
