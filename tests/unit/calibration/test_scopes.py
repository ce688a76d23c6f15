"""Where each scope lets a model be moved."""

from dataclasses import replace

import pytest
import torch

from equfl.calibration.base import Scope
from equfl.calibration.full import Full
from equfl.calibration.group_shift import GroupShift
from equfl.calibration.sensitive_inputs import SensitiveInputs
from equfl.calibration.trajectory import Trajectory
from equfl.core.component import known
from equfl.core.errors import ConfigError
from equfl.fairness.rates import margins

SCOPES = [scope() for scope in known(Scope).values()]


def moved(scope, place, coordinates=None):
    directions = scope.directions(place)
    return directions.change(torch.ones(directions.size) if coordinates is None else coordinates)


def margin(place, vector):
    return margins(place.network.forward(vector, place.buffers, place.synthetic.inputs))


def blind(place):
    return replace(place, schema=replace(place.schema, sensitive=("unseen",), group_codes=()))


@pytest.mark.parametrize("scope", SCOPES, ids=str)
class TestEveryScope:
    def test_its_directions_are_a_linear_map_to_changes_of_the_model(self, scope, place):
        directions = scope.directions(place)
        one, other = torch.randn(2, directions.size, generator=torch.Generator().manual_seed(0))
        assert directions.change(one).shape == place.vector.shape
        assert torch.allclose(
            directions.change(one + 2 * other), directions.change(one) + 2 * directions.change(other), atol=1e-4
        )

    def test_every_coordinate_moves_the_model(self, scope, place):
        directions = scope.directions(place)
        assert all(directions.change(axis).norm() > 0 for axis in torch.eye(directions.size))


class TestSensitiveInputs:
    def test_only_rows_of_a_group_change_by_the_weights_of_its_code(self, place):
        women = torch.zeros(12)
        women[::2] = 1.0  # of each hidden unit the weight of the code of group 0, then that of group 1
        change = moved(SensitiveInputs(), place, women)
        different = (margin(place, place.vector + change) != margin(place, place.vector)).flatten()
        assert not different[place.synthetic.groups == 1].any()
        assert different[place.synthetic.groups == 0].any()

    def test_with_the_last_layer_it_has_as_many_more_coordinates(self, place):
        assert SensitiveInputs().directions(place).size == 12
        assert SensitiveInputs(last_layer=True).directions(place).size == 12 + 6 * 2 + 2

    def test_a_model_that_does_not_see_the_attribute_has_no_such_place(self, place):
        assert SensitiveInputs().directions(blind(place)) is None


class TestTrajectory:
    def test_its_directions_are_the_first_steps_that_the_federation_took(self, place):
        step = place.collected[1] - place.collected[0]
        change = moved(Trajectory(differences=1), place)
        assert torch.allclose(change, step / step.norm(), atol=1e-5)

    def test_models_that_never_moved_have_none(self, place):
        assert Trajectory().directions(replace(place, collected=place.collected[:1].expand(5, -1))) is None

    def test_no_differences_are_refused(self):
        with pytest.raises(ConfigError, match="differences"):
            Trajectory(differences=0)


class TestGroupShift:
    def test_each_direction_shifts_one_groups_margins_by_about_1_and_the_others_by_about_0(self, place):
        directions = GroupShift(ridge=1e-3).directions(place)
        assert directions.size == 2
        for group in range(2):
            small = 0.1 * directions.change(torch.eye(2)[group])
            shift = (margin(place, place.vector + small) - margin(place, place.vector)).flatten() / 0.1
            own = place.synthetic.groups == group
            assert shift[own].mean().item() == pytest.approx(1, abs=0.2)
            assert shift[~own].mean().item() == pytest.approx(0, abs=0.2)

    def test_more_ridge_makes_shorter_changes(self, place):
        lengths = [moved(GroupShift(ridge=ridge), place).norm().item() for ridge in (0.01, 0.1, 1.0)]
        assert lengths == sorted(lengths, reverse=True)

    def test_a_model_that_does_not_see_the_attribute_is_moved_in_its_last_layer(self, place):
        change = moved(GroupShift(), blind(place))
        assert change[: -(6 * 2 + 2)].abs().max() == 0
        assert change.norm() > 0

    def test_no_ridge_is_refused(self):
        with pytest.raises(ConfigError, match="ridge"):
            GroupShift(ridge=0.0)


def test_the_whole_model_may_move_anywhere(place):
    change = torch.randn(len(place.vector))
    assert torch.equal(moved(Full(), place, change), change)
