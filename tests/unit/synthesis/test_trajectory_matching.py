from dataclasses import replace

import pytest
import torch

from equfl.core.errors import CalibrationError, ConfigError
from equfl.core.random import Seed
from equfl.core.schema import Column, Schema
from equfl.methods.equfl import EquFL
from equfl.synthesis._groups import balanced_cells, decoded_groups, set_codes
from equfl.synthesis.trajectory_matching import TrajectoryMatching

CODED = Schema(
    shape=(3,),
    classes=("no", "yes"),
    groups=("a", "b"),
    sensitive=("group",),
    columns=(Column("group", 0, ("a", "b"), off=(0.0, -1.0), on=(1.0, 2.0)), Column("age", 2)),
    group_codes=((0,), (1,)),
)


@pytest.fixture
def trajectory(context):
    """Models of a teacher's training: what the server would have collected from clients with these rows."""
    draws = Seed(5).generator("planted")
    vector, _ = _start(context)
    inputs = torch.randn(200, 3, generator=draws)
    labels = torch.nn.functional.one_hot((inputs[:, 0] - inputs[:, 2] > 0).long(), 2).float()
    models = [vector]
    for _ in range(9):
        for _ in range(16):
            vector = vector - 0.1 * context.network.mean_gradient(vector, inputs, labels)
        models.append(vector)
    return torch.stack(models)


def _start(context):
    from equfl.models.mlp import MLP

    return MLP((4,)).initial(context.network, Seed(5).generator("start"))


def test_the_rows_come_to_retrace_a_planted_trajectory(context, trajectory):
    matching = TrajectoryMatching(samples=60, iterations=300, match_steps=3)
    samples, diagnostics = matching(trajectory, replace(context, schema=CODED))
    assert diagnostics["synthesis/matching_loss"] < 0.1 < diagnostics["synthesis/matching_loss_before"]
    assert samples.inputs.shape == (60, 3)
    torch.testing.assert_close(samples.labels.sum(dim=1), torch.ones(60))


def test_the_same_seed_gives_the_same_rows(context, trajectory):
    matching = TrajectoryMatching(samples=20, iterations=10)
    first, _ = matching(trajectory, replace(context, schema=CODED))
    again, _ = matching(trajectory, replace(context, schema=CODED))
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.labels, again.labels)


def test_free_groups_are_read_off_the_optimised_inputs(context, trajectory):
    samples, _ = TrajectoryMatching(samples=20, iterations=5)(trajectory, replace(context, schema=CODED))
    assert torch.equal(samples.groups, decoded_groups(samples.inputs, CODED))


def test_fixed_groups_keep_valid_codes_in_balanced_cells(context, trajectory):
    matching = TrajectoryMatching(samples=20, iterations=5, sensitive="fixed")
    samples, _ = matching(trajectory, replace(context, schema=CODED))
    codes = {tuple(row) for row in samples.inputs[:, :2].tolist()}
    assert codes == {(1.0, -1.0), (0.0, 2.0)}
    assert torch.equal(samples.groups == 0, samples.inputs[:, 0] == 1)
    cells = samples.label_weights().T @ samples.group_weights()
    torch.testing.assert_close(cells, torch.full((2, 2), 5.0), atol=0.2, rtol=0)


def test_without_the_attribute_among_the_inputs_groups_are_assigned(context, trajectory):
    samples, _ = TrajectoryMatching(samples=20, iterations=5)(trajectory, context)
    assert samples.groups.bincount().tolist() == [10, 10]


def test_inputs_stay_within_their_limit(context, trajectory):
    samples, _ = TrajectoryMatching(samples=20, iterations=20, input_rate=10.0, limit=1.5)(trajectory, context)
    assert samples.inputs.abs().max() == 1.5


def test_models_that_did_not_move_do_not_divide_by_nothing(context, trajectory):
    still = trajectory[:1].repeat(10, 1)
    samples, diagnostics = TrajectoryMatching(samples=20, iterations=5)(still, context)
    assert samples.inputs.isfinite().all()
    assert diagnostics["synthesis/matching_loss"] == 0


def test_too_few_collected_models_are_refused_with_what_to_do(context, trajectory):
    with pytest.raises(CalibrationError, match="5 collected models; wanted more than the 5 that a pair is apart"):
        TrajectoryMatching()(trajectory[:5], context)


@pytest.mark.parametrize("field", ["samples", "iterations", "match_steps"])
def test_a_synthesis_of_nothing_is_refused(field):
    with pytest.raises(ConfigError, match=f"method.synthesis.{field} = 0"):
        TrajectoryMatching(**{field: 0})


def test_progress_is_told_until_the_end(context, trajectory):
    told = []
    context = replace(context, progress=lambda *now: told.append(now))
    TrajectoryMatching(samples=20, iterations=4)(trajectory, context)
    assert told[-1] == ("synthesising", 4, 4)


def test_codes_written_into_rows_are_read_back_as_the_same_groups():
    labels, groups = balanced_cells(40, 2, 2, Seed(0).generator("cells"))
    inputs, positions = set_codes(torch.zeros(40, 3), groups, CODED)
    assert positions.tolist() == [0, 1]
    assert torch.equal(decoded_groups(inputs, CODED).argmax(dim=1), groups)
    assert torch.bincount(2 * labels + groups).tolist() == [10, 10, 10, 10]


def test_equfl_synthesises_by_default_as_the_paper_does():
    assert EquFL().synthesis == TrajectoryMatching(samples=1000, match_steps=5, sensitive="free")
