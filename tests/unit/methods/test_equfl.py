from dataclasses import replace
from math import inf

import pytest
import torch

from equfl.calibration.full import Full
from equfl.calibration.sensitive_inputs import SensitiveInputs
from equfl.calibration.trajectory import Trajectory
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort, ServerState
from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.neighbours import nearest
from equfl.fairness.several import Several
from equfl.methods.base import Method, changes
from equfl.methods.equfl import EquFL
from equfl.methods.fedavg import FedAvg
from equfl.models.mlp import MLP
from equfl.synthesis.trajectory_matching import TrajectoryMatching

SMALL = EquFL(gamma=0.5, synthesis=TrajectoryMatching(samples=24, iterations=3, match_steps=2))


def random_cohort(state: ServerState, clients: int = 3) -> Cohort:
    updates = torch.randn(clients, len(state.vector), generator=Seed(state.round).generator("updates"))
    return Cohort(tuple(range(clients)), updates, torch.full((clients,), 1 / clients), rows=(10.0,) * clients)


def rounds_of(method: Method, context, rounds: int) -> list[ServerState]:
    vector, buffers = MLP((4,)).initial(context.network, Seed(0).generator("start"))
    states = [ServerState(0, vector, buffers)]
    for number in range(1, rounds + 1):
        state, _ = method.step(states[-1], random_cohort(states[-1]), replace(context, round=number))
        states.append(state)
    return states


def test_equfl_leaves_the_clients_alone():
    assert [hook for hook in ("prepare", "instruct", "objective", "report", "step") if changes(EquFL(), hook)] == [
        "step"
    ]


def test_the_first_half_of_the_rounds_is_fedavgs_to_the_bit(context):
    ours, theirs = rounds_of(SMALL, context, 5), rounds_of(FedAvg(), context, 5)
    assert SMALL.shared_rounds(context.rounds) == 5
    assert all(torch.equal(a.vector, b.vector) for a, b in zip(ours, theirs, strict=True))


def test_the_server_keeps_the_models_it_sent_out_the_random_start_first(context):
    states = rounds_of(SMALL, context, 5)
    kept = states[-1].memory
    assert sorted(kept) == [f"collected/{number:05d}" for number in range(1, 6)]
    assert all(kept[f"collected/{number:05d}"] is states[number - 1].vector for number in range(1, 6))


def test_the_synthetic_rows_are_made_once(context):
    sixth, seventh = rounds_of(SMALL, context, 7)[-2:]
    assert sixth.memory["synthetic/inputs"].shape == (24, 3)
    assert seventh.memory["synthetic/inputs"] is sixth.memory["synthetic/inputs"]


def test_a_calibrated_step_is_the_papers_formula(context):
    before, after = rounds_of(SMALL, context, 7)[-2:]
    cohort, memory = random_cohort(before), before.memory
    synthetic = Samples(
        memory["synthetic/inputs"],
        memory["synthetic/labels"],
        memory["synthetic/groups"],
        neighbours=nearest(memory["synthetic/inputs"]),
    )
    point = before.vector.clone().requires_grad_()
    loss = context.target.loss(context.network.forward(point, {}, synthetic.inputs), synthetic)
    (gradient,) = torch.autograd.grad(loss, point)
    expected = before.vector - 0.1 * (0.5 * gradient + cohort.updates.mean(dim=0))
    torch.testing.assert_close(after.vector, expected)


def test_the_calibrated_update_alone_lowers_the_fairness_loss_on_the_synthetic_rows(context):
    before = rounds_of(SMALL, context, 6)[-1]
    still = replace(random_cohort(before), updates=torch.zeros(3, len(before.vector)))
    tiny = replace(SMALL, gamma=1e-3)
    after, first = tiny.step(before, still, replace(context, round=7))
    _, second = tiny.step(after, still, replace(context, round=8))
    assert second["calibration/loss"] < first["calibration/loss"]


def test_the_calibrated_update_is_never_an_input_of_the_rule(context):
    seen = []

    def watching(updates, shares):
        seen.append(updates)
        return shares @ updates

    states = rounds_of(SMALL, replace(context, aggregate=watching), 7)
    for state, updates in zip(states, seen, strict=False):
        assert torch.equal(updates, random_cohort(state).updates)


def test_gamma_zero_is_fedavg(context):
    ours, theirs = rounds_of(replace(SMALL, gamma=0.0), context, 8), rounds_of(FedAvg(), context, 8)
    torch.testing.assert_close(ours[-1].vector, theirs[-1].vector)


def test_a_calibrated_round_reports_how_its_update_compares_with_the_clients(context):
    state = rounds_of(SMALL, context, 6)[-1]
    _, diagnostics = SMALL.step(state, random_cohort(state), replace(context, round=7))
    assert set(diagnostics) == {"calibration/loss", "calibration/ratio", "calibration/cosine"}
    assert diagnostics["calibration/ratio"] > 0
    assert -1 <= diagnostics["calibration/cosine"] <= 1


def test_the_defaults_are_the_papers():
    assert EquFL().gamma == 1.0
    assert EquFL().shared_rounds(100) == 50
    letter = EquFL(schedule="constant", surrogate="paper", scope=Full(), largest_ratio=inf)
    assert letter == EquFL()


@pytest.mark.parametrize(
    "setting", [{"gamma": -1.0}, {"collect_share": 1.5}, {"collect_share": -0.1}, {"collect_models": -1}]
)
def test_settings_outside_their_range_are_refused(setting):
    with pytest.raises(ConfigError, match=f"method.{next(iter(setting))}"):
        EquFL(**setting)


class TestBeyondTheLetter:
    """Settings that leave the paper; without them nothing of this happens."""

    def calibrated(self, method, context, **of_context):
        context = replace(context, **of_context)
        before, after = rounds_of(method, context, 7)[-2:]
        cohort = random_cohort(before)
        aggregate = cohort.shares @ cohort.updates
        _, told = method.step(before, cohort, replace(context, round=7))
        return (before.vector - after.vector) / context.learning_rate - aggregate, aggregate, told

    def test_a_guard_shortens_a_calibrated_update_that_is_too_long_and_says_so(self, context):
        update, aggregate, told = self.calibrated(replace(SMALL, gamma=500.0, largest_ratio=0.25), context)
        assert update.norm().item() == pytest.approx(0.25 * aggregate.norm().item(), rel=1e-3)
        assert told["calibration/ratio"] == pytest.approx(0.25)
        assert told["calibration/shortened"] < 1

    def test_the_guard_leaves_a_shorter_one_alone(self, context):
        assert "calibration/shortened" not in self.calibrated(replace(SMALL, largest_ratio=1e6), context)[2]

    def test_the_theorys_schedule_shortens_all_steps_from_the_first_on(self, context):
        method = replace(SMALL, schedule="theory", delay=4.0)
        ours, fedavg = rounds_of(method, context, 2), rounds_of(FedAvg(), context, 2)
        assert method.shared_rounds(context.rounds) == 0
        assert torch.equal(ours[1].vector, fedavg[1].vector)
        step = ours[1].vector - ours[2].vector
        cohort = random_cohort(ours[1])
        assert torch.allclose(step, 0.1 * 5 / 6 * (cohort.shares @ cohort.updates), atol=1e-6)

    def test_rates_instead_of_losses_give_another_update(self, context):
        letter, _, _ = self.calibrated(SMALL, context)
        rates, _, told = self.calibrated(replace(SMALL, surrogate="rate"), context)
        assert not torch.allclose(letter, rates)
        assert 0 <= told["calibration/loss"] <= 2

    def test_inside_a_scope_only_its_weights_are_moved(self, context):
        update, _, _ = self.calibrated(replace(SMALL, scope=Trajectory(differences=1)), context)
        first, second = (state.vector for state in rounds_of(SMALL, context, 1))
        assert torch.nn.functional.cosine_similarity(update, second - first, dim=0).abs().item() > 0.99

    def test_a_model_without_the_scopes_place_is_moved_as_a_whole_and_the_record_says_so(self, context):
        update, _, told = self.calibrated(replace(SMALL, scope=SensitiveInputs()), context)
        assert told["calibration/no_sensitive_inputs_so_full"] == 1
        assert torch.equal(update, self.calibrated(SMALL, context)[0])

    def test_with_several_targets_the_update_lowers_every_loss(self, context):
        parts = (EqualizedOdds(), DemographicParity())
        update, _, told = self.calibrated(SMALL, context, target=Several(parts))
        alone = [self.calibrated(SMALL, context, target=part)[0] for part in parts]
        assert all(update @ one >= 0 for one in alone)
        weights = [told[f"calibration/weight/{part.name}"] for part in parts]
        assert sum(weights) == pytest.approx(1)

    @pytest.mark.parametrize(
        "setting", [{"gamma": -1.0}, {"largest_ratio": 0.0}, {"delay": -1.0}, {"sharpness": 0.0}], ids=str
    )
    def test_a_setting_without_a_meaning_is_refused(self, setting):
        with pytest.raises(ConfigError, match=next(iter(setting))):
            EquFL(**setting)
