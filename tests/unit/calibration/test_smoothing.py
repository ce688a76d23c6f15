"""Like rows treated alike: predictions vary less between near rows, and are on average as before."""

import pytest
import torch

from equfl.calibration.problem import synthetic_margins
from equfl.calibration.smoothing import Smoothing, _neighbour
from equfl.core.errors import ConfigError


def probabilities(place, vector, inputs):
    with torch.no_grad():
        return place.network.forward(vector, place.buffers, inputs).softmax(dim=1)[:, 1]


def smoothed(place, length=20.0, **settings):
    return Smoothing(**settings).smoothed(place, length, torch.Generator().manual_seed(0))


def variation(place, vector):
    rows = place.synthetic.inputs
    noise = torch.zeros_like(rows)
    noise[:, :2] = 0.6 * torch.randn(len(rows), 2, generator=torch.Generator().manual_seed(1))
    return (probabilities(place, vector, rows) - probabilities(place, vector, rows + noise)).square().mean().item()


def test_predictions_vary_less_between_near_rows(place):
    assert variation(place, smoothed(place)) < 0.9 * variation(place, place.vector)


def test_the_mean_prediction_stays_nearly_where_it_was(place):
    rows = place.synthetic.inputs
    before = probabilities(place, place.vector, rows).mean()
    assert probabilities(place, smoothed(place), rows).mean().item() == pytest.approx(before.item(), abs=0.01)


def test_a_longer_way_smoothes_more(place):
    left = [variation(place, smoothed(place, length)) for length in (0.0, 5.0, 20.0)]
    assert left == sorted(left, reverse=True)
    assert torch.equal(smoothed(place, 0.0), place.vector)


def test_codes_are_never_moved(place):
    near = _neighbour(place.synthetic.inputs, place, 0.6, torch.Generator().manual_seed(0))
    assert torch.equal(near[:, 2:], place.synthetic.inputs[:, 2:])
    assert (near[:, :2] != place.synthetic.inputs[:, :2]).all()


def test_the_same_generator_gives_the_same_model(place):
    assert torch.equal(smoothed(place), smoothed(place))
    assert synthetic_margins(place.network, smoothed(place), place.buffers, place.synthetic).isfinite().all()


@pytest.mark.parametrize("setting", [{"width": 0.0}, {"steps": 0}], ids=str)
def test_a_setting_without_a_meaning_is_refused(setting):
    with pytest.raises(ConfigError):
        Smoothing(**setting)
