from dataclasses import fields, replace

import pytest
import torch

from equfl.core.protocol import Cohort, ServerState
from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.fairness.neighbours import nearest
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
    assert {field.name for field in fields(EquFL)} == {
        "gamma",
        "collect_share",
        "collect",
        "collect_models",
        "synthesis",
    }


@pytest.mark.parametrize(
    "setting", [{"gamma": -1.0}, {"collect_share": 1.5}, {"collect_share": -0.1}, {"collect_models": -1}]
)
def test_settings_outside_their_range_are_refused(setting):
    from equfl.core.errors import ConfigError

    with pytest.raises(ConfigError, match=f"method.{next(iter(setting))}"):
        EquFL(**setting)
