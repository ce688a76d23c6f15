import pytest
import torch

from equfl.aggregation.norm_clipping import NormClipping
from equfl.core.errors import ConfigError

ROWS = torch.tensor([[3.0, 4.0], [0.0, 1.0], [0.0, -20.0], [0.0, 0.0]])
SHARES = torch.full((4,), 0.25)


def test_only_what_is_longer_is_shortened_and_keeps_its_direction(context):
    found = NormClipping(max_norm=2.5)(ROWS, SHARES, context)
    torch.testing.assert_close(found.vector, torch.tensor([1.5 / 4, (2.0 + 1.0 - 2.5) / 4]))
    assert found.diagnostics == {"limit": 2.5, "shortened": 2.0}


def test_without_a_given_length_it_is_the_median_of_the_round(context):
    assert NormClipping()(ROWS, SHARES, context).diagnostics == {"limit": 3.0, "shortened": 2.0}


def test_no_update_can_move_the_model_far_however_long_it_is(context):
    far = torch.cat([ROWS, torch.full((1, 2), 1e30)])
    moved = NormClipping(max_norm=1.0)(far, torch.full((5,), 0.2), context).vector
    assert moved.norm() <= 1.0


def test_updates_of_no_length_give_none(context):
    assert NormClipping()(torch.zeros(4, 2), SHARES, context).vector.tolist() == [0.0, 0.0]


def test_a_length_of_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"aggregation\.max_norm = 0"):
        NormClipping(max_norm=0.0)
