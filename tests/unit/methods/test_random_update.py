"""The two controls: ``gaussian`` and ``uniform``."""

from dataclasses import replace

import pytest
import torch

from equfl.core.errors import ConfigError
from equfl.core.random import Seed
from equfl.methods.fedavg import FedAvg
from equfl.methods.gaussian import Gaussian
from equfl.methods.uniform import Uniform

CONTROLS = [Gaussian(), Uniform()]


def noise(method, server, cohort, context):
    """What the control adds to the FedAvg step, before the learning rate."""
    ours, theirs = (m.step(server, cohort(), context)[0].vector for m in (method, FedAvg()))
    return (theirs - ours) / context.learning_rate


def test_gaussian_draws_from_a_normal_law_with_its_deviation():
    drawn = Gaussian(deviation=2.0).draw(100_000, Seed(0).generator("g"))
    assert drawn.mean().item() == pytest.approx(0, abs=0.02)
    assert drawn.std().item() == pytest.approx(2, rel=0.01)
    # The fourth moment tells a normal law (3) from others.
    assert (drawn / 2).pow(4).mean().item() == pytest.approx(3, rel=0.05)


def test_uniform_fills_its_interval_evenly():
    drawn = Uniform(reach=2.0).draw(100_000, Seed(0).generator("u"))
    assert -2 <= drawn.min() < -1.99
    assert 1.99 < drawn.max() <= 2
    assert drawn.std().item() == pytest.approx(2 / 3**0.5, rel=0.01)


@pytest.mark.parametrize("method", CONTROLS, ids=str)
class TestControl:
    def test_it_is_fedavg_while_equfl_would_collect(self, method, server, cohort, context):
        assert method.shared_rounds(10) == 5
        ours, told = method.step(server, cohort(), replace(context, round=5))
        assert torch.equal(ours.vector, FedAvg().step(server, cohort(), context)[0].vector)
        assert told == {}

    def test_afterwards_it_adds_a_fresh_draw_each_round_within_the_servers_step(self, method, server, cohort, context):
        later = [
            replace(context, round=number, generator=lambda name, number=number: Seed(0).generator(name, round=number))
            for number in (6, 7)
        ]
        first, second = (noise(method, server, cohort, one) for one in later)
        assert not torch.allclose(first, second, atol=0.1)
        expected = method.draw(len(server.vector), later[0].generator("random update"))
        torch.testing.assert_close(first, expected, rtol=1e-4, atol=1e-4)

    def test_gamma_scales_it(self, method, server, cohort, context):
        late = replace(context, round=6)
        tenth = noise(replace(method, gamma=0.1), server, cohort, late)
        torch.testing.assert_close(10 * tenth, noise(method, server, cohort, late), rtol=1e-3, atol=1e-3)

    def test_the_record_says_how_long_it_is_beside_the_clients_update(self, method, server, cohort, context):
        late = replace(context, round=6)
        _, told = method.step(server, cohort(), late)
        aggregate = cohort().updates.mean(dim=0)
        expected = noise(method, server, cohort, late).norm() / aggregate.norm()
        assert told["noise/ratio"] == pytest.approx(expected.item(), rel=1e-3)

    def test_settings_outside_their_range_are_refused(self, method):
        with pytest.raises(ConfigError, match=r"method\.gamma"):
            replace(method, gamma=-1.0)
        with pytest.raises(ConfigError, match=r"method\.collect_share"):
            replace(method, collect_share=2.0)
