from dataclasses import replace

import pytest
import torch

from equfl.core.errors import CalibrationError, ConfigError
from equfl.core.random import Seed
from equfl.core.schema import Column, Schema
from equfl.models.mlp import MLP
from equfl.synthesis._schema_rows import SchemaRows
from equfl.synthesis.faithful_matching import FaithfulMatching

SCHEMA = Schema(
    shape=(7,),
    classes=("no", "yes"),
    groups=("a", "b"),
    sensitive=("group",),
    columns=(
        Column("age", 0),
        Column("job", 1, ("x", "y", "z"), off=(0.0, 0.0, -1.0), on=(1.0, 1.0, 2.0)),
        Column("hours", 4),
        Column("group", 5, ("a", "b"), off=(0.0, -1.0), on=(1.0, 2.0)),
    ),
    group_codes=((5,), (6,)),
)
QUICK = FaithfulMatching(samples=40, iterations=30, gaps=(3,), inner_steps=3)


@pytest.fixture
def census(context):
    """A context whose rows have a schema."""
    return replace(context, network=MLP((4,)).network(SCHEMA.shape, 2), schema=SCHEMA)


@pytest.fixture
def trajectory(census):
    """Models of a teacher's training on rows that obey the schema."""
    draws = Seed(5).generator("planted")
    groups = torch.arange(200) % 2
    inputs = SchemaRows.draw(groups, SCHEMA, 8.0, draws).inputs()
    labels = torch.nn.functional.one_hot((inputs[:, 0] - inputs[:, 3] + inputs[:, 6] > 0).long(), 2).float()
    vector, _ = MLP((4,)).initial(census.network, Seed(5).generator("start"))
    models = [vector]
    for _ in range(9):
        for _ in range(16):
            vector = vector - 0.1 * census.network.mean_gradient(vector, inputs, labels)
        models.append(vector)
    return torch.stack(models)


def test_the_rows_come_to_retrace_a_planted_trajectory(census, trajectory):
    _, told = replace(QUICK, iterations=200)(trajectory, census)
    assert told["synthesis/matching_loss"] < 0.15 < told["synthesis/matching_loss_before"]


def test_the_rows_obey_the_schema(census, trajectory):
    samples, _ = QUICK(trajectory, census)
    off, on = torch.tensor(SCHEMA.codes_off)[1:4], torch.tensor(SCHEMA.codes_on)[1:4]
    shares = (samples.inputs[:, 1:4] - off) / (on - off)
    torch.testing.assert_close(shares.sum(dim=1), torch.ones(40))
    assert shares.min() >= -1e-6
    assert samples.inputs[:, [0, 4]].abs().max() <= 5


def test_the_sensitive_inputs_are_the_codes_of_balanced_groups(census, trajectory):
    samples, _ = QUICK(trajectory, census)
    assert samples.groups.bincount().tolist() == [20, 20]
    codes = torch.tensor([[1.0, -1.0], [0.0, 2.0]])
    assert torch.equal(samples.inputs[:, 5:], codes[samples.groups])


@pytest.mark.parametrize(
    "settings",
    [{"gaps": (2, 4)}, {"target_average": 2}, {"batch": 15}, {"gradient": "unrolled"}, {"gradient": "tesla"}],
    ids=str,
)
def test_every_option_lowers_the_loss_and_gives_the_same_rows_again(census, trajectory, settings):
    matching = replace(QUICK, **settings)
    first, told = matching(trajectory, census)
    again, _ = matching(trajectory, census)
    other, _ = QUICK(trajectory, census)
    assert told["synthesis/matching_loss"] < told["synthesis/matching_loss_before"]
    assert torch.equal(first.inputs, again.inputs)
    assert not torch.equal(first.inputs, other.inputs)


def test_the_inner_rate_is_learned(census, trajectory):
    _, told = QUICK(trajectory, census)
    assert told["synthesis/inner_rate"] != pytest.approx(census.learning_rate * census.local_steps, rel=1e-4)


def test_a_search_that_no_longer_gains_stops_early_and_says_so(census, trajectory):
    still = {"input_rate": 0.0, "label_rate": 0.0, "step_rate": 0.0}
    _, told = replace(QUICK, iterations=1000, patience=5, **still)(trajectory[:4], census)
    assert told["synthesis/iterations"] == 10
    _, told = replace(QUICK, iterations=20, **still)(trajectory[:4], census)
    assert told["synthesis/iterations"] == 20


def test_pairs_that_did_not_move_are_passed_over_and_counted(census, trajectory):
    samples, told = QUICK(trajectory[:1].repeat(10, 1), census)
    assert samples.inputs.isfinite().all()
    assert told["synthesis/pairs_that_did_not_move"] == 30
    assert told["synthesis/matching_loss"] == 0


def test_a_training_that_diverges_halves_the_inner_rate_and_says_how_often(census, trajectory):
    samples, told = QUICK(trajectory, replace(census, learning_rate=1e37))
    assert told["synthesis/rate_halved"] > 0
    assert samples.inputs.isfinite().all()
    assert samples.labels.isfinite().all()
    _, told = QUICK(trajectory, census)
    assert told["synthesis/rate_halved"] == 0


def test_more_gap_than_collected_models_is_refused_with_what_to_do(census, trajectory):
    with pytest.raises(CalibrationError, match="5 collected models; wanted more than the 5 that a pair is apart"):
        FaithfulMatching(gaps=(2, 5))(trajectory[:5], census)


@pytest.mark.parametrize(
    "settings",
    [{"samples": 0}, {"iterations": 0}, {"gaps": ()}, {"gaps": (0,)}, {"batch": -1}, {"target_average": 6}],
    ids=str,
)
def test_settings_without_meaning_are_refused(settings):
    with pytest.raises(ConfigError, match=f"method.synthesis.{next(iter(settings))}"):
        FaithfulMatching(**settings)
