"""What the server makes of the clients' counts."""

import math

import pytest
import torch

from equfl.calibration.feedback import certain_loss, credible, integrated, measured_rates


def counts(*cells: float) -> torch.Tensor:
    """(predicted, label, group), for two of each."""
    return torch.tensor(cells, dtype=torch.float64).reshape(2, 2, 2)


EIGHT = counts(1, 1, 1, 1, 1, 1, 1, 1)


class TestCredible:
    def test_whole_counts_of_all_rows_and_of_fewer_rows_can_be_true(self):
        assert credible(torch.stack([EIGHT, EIGHT]), rows=(8.0, 20.0)).tolist() == [True, True]

    @pytest.mark.parametrize("cell", [-1.0, math.nan, math.inf, 2.0])
    def test_a_negative_count_one_that_is_no_number_and_more_counts_than_rows_cannot(self, cell):
        wrong = EIGHT.clone()
        wrong[1, 0, 1] = cell
        assert credible(torch.stack([EIGHT, wrong]), rows=(8.0, 8.0)).tolist() == [True, False]


class TestMeasuredRates:
    def test_they_are_the_share_predicted_positive_per_label_and_group(self):
        tables = counts(6, 1, 2, 0, 2, 1, 6, 4).unsqueeze(0)
        assert measured_rates(tables).tolist() == [[[0.25, 0.5], [0.75, 1.0]]]

    def test_an_empty_cell_has_the_rate_0(self):
        assert measured_rates(counts(1, 0, 1, 0, 1, 0, 1, 0).unsqueeze(0))[0, :, 1].tolist() == [0, 0]


class TestIntegrated:
    SYNTHETIC, MEASURED = torch.tensor([[[0.5, 0.5]]]), torch.tensor([[[0.6, 0.3]]])

    def test_the_first_difference_is_taken_over_whole(self):
        offset = integrated(None, self.MEASURED, self.SYNTHETIC, gain=0.1, leak=0.5)
        assert torch.allclose(self.SYNTHETIC + offset, self.MEASURED)

    def test_a_later_one_by_the_gain(self):
        offset = integrated(torch.zeros(1, 1, 2), self.MEASURED, self.SYNTHETIC, gain=0.5, leak=0.0)
        assert torch.allclose(offset, torch.tensor([[[0.05, -0.1]]]))

    def test_what_was_learned_leaks_away(self):
        offset = integrated(torch.full((1, 1, 2), 0.2), self.MEASURED, self.SYNTHETIC, gain=0.0, leak=0.25)
        assert torch.allclose(offset, torch.tensor([[[0.15, 0.15]]]))

    def test_it_does_not_wind_up_beyond_rates_that_are_possible(self):
        offset = integrated(torch.full((1, 1, 2), 0.9), self.MEASURED, self.SYNTHETIC, gain=0.0, leak=0.0)
        assert torch.allclose(self.SYNTHETIC + offset, torch.ones(1, 1, 2))


class TestCertainLoss:
    def test_nothing_is_lost_where_nothing_changes(self):
        assert certain_loss(EIGHT.unsqueeze(0), EIGHT.unsqueeze(0)) == 0

    def test_it_is_the_loss_and_two_standard_errors_of_the_rows_that_changed(self):
        before = counts(50, 0, 0, 0, 0, 0, 50, 0).unsqueeze(0)
        after = counts(46, 0, 0, 0, 4, 0, 50, 0).unsqueeze(0)
        assert certain_loss(before, after) == pytest.approx(0.04 + 2 * math.sqrt(0.04 / 100))

    def test_a_changed_row_counts_once_also_with_several_classes(self):
        # Of 90 rows 9 leave class 0 for class 1, which is wrong: two of the three tables say so.
        before = torch.zeros(3, 2, 2, 1, dtype=torch.float64)
        before[:, 0, 0, 0], before[:, 1, 1, 0] = 60, 30
        after = before.clone()
        after[0, 1, 1, 0], after[0, 0, 1, 0] = 21, 9
        after[1, 0, 0, 0], after[1, 1, 0, 0] = 51, 9
        assert certain_loss(before, after) == pytest.approx(0.1 + 2 * math.sqrt(0.1 / 90))
