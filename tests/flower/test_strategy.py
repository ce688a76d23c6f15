"""What the wrapper must do around every strategy that Flower ships."""

import random

import numpy as np
import pytest
import torch
from flower_clients import NODES, STRATEGIES, Nudge, answer, initial, nearly_idle, run, state, trained, wrapped
from flwr.app import Array, ArrayRecord
from flwr.serverapp.strategy import FedAvg, FedMedian, FedProx

from equfl.core.errors import CohortError, ConfigError, RunError
from equfl.core.random import Seed
from equfl.flower.strategy import sampling
from equfl.methods.equfl_solve import EquFLSolve
from equfl.synthesis.trajectory_matching import TrajectoryMatching

ROUNDS = 4
COUNTER = "norm.num_batches_tracked"
every_strategy = pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
private = {name for name in STRATEGIES if "clipping" in name}


@every_strategy
class TestEveryStrategy:
    def test_without_a_correction_it_ends_where_the_strategy_alone_ends(self, make):
        # Alone, several of them cannot take a model with step counters: they add fractions to whole numbers.
        arrays = ArrayRecord({name: array for name, array in initial().items() if name != COUNTER})
        alone = state(run(make(), arrays=arrays))
        ours = state(run(wrapped(make())))
        assert ours.keys() == alone.keys() | {COUNTER}
        for name, value in alone.items():
            torch.testing.assert_close(ours[name].double(), value.double(), rtol=1e-4, atol=1e-5)

    def test_entries_keep_their_order_and_their_types(self, make):
        before, after = initial(), run(wrapped(make(), Nudge())).arrays
        assert list(after) == list(before)
        assert [array.dtype for array in after.values()] == [array.dtype for array in before.values()]
        assert [array.shape for array in after.values()] == [array.shape for array in before.values()]

    def test_a_correction_is_taken_once_a_round_and_does_not_grow(self, make):
        before, after = initial().to_torch_state_dict(), state(run(wrapped(make(), Nudge()), nearly_idle, rounds=5))
        for name in ("norm.weight", "norm.bias", "out.weight"):
            torch.testing.assert_close(after[name], before[name] - 5.0)

    def test_a_step_counter_is_counted_and_nothing_else_is_done_to_it(self, make):
        after = state(run(wrapped(make(), Nudge())))
        assert after[COUNTER].item() == ROUNDS * NODES  # the busiest client counts 5 a round

    def test_going_on_from_any_round_ends_where_the_undisturbed_run_ended(self, make, tmp_path):
        undisturbed = run(wrapped(make(), Nudge()))
        for stop in range(1, ROUNDS):
            folder = tmp_path / str(stop)
            with pytest.raises(KeyboardInterrupt):
                run(wrapped(make(), Nudge(), state=folder), evaluate_fn=stopping_after(stop))
            resumed = run(wrapped(make(), Nudge(), state=folder))
            assert state(resumed).keys() == state(undisturbed).keys()
            assert all(torch.equal(value, state(undisturbed)[name]) for name, value in state(resumed).items())
            assert [*resumed.train_metrics_clientapp] == [*range(stop + 1, ROUNDS + 1)]

    def test_clients_that_cannot_be_used_do_no_harm(self, make, request):
        result = run(wrapped(make(), Nudge()), sabotaged)
        assert all(value.isfinite().all() for value in state(result).values())
        assert result.train_metrics_clientapp[1]["equfl/left_out"] == 2
        if request.node.callspec.id in private:
            # The noise is made for five clients: with three, the strategy has no model, and the last one stays.
            assert all(torch.equal(value, initial().to_torch_state_dict()[k]) for k, value in state(result).items())
        else:
            assert not torch.equal(state(result)["out.bias"], initial().to_torch_state_dict()["out.bias"])


def stopping_after(rounds):
    """A server-side evaluation that ends the process, as far as Flower can see, after so many rounds."""

    def evaluate(number, arrays):
        if number == rounds:
            raise KeyboardInterrupt

    return evaluate


def sabotaged(message, context):
    """Client 1 sends NaN, client 3 fails."""
    node = int(context.node_config["partition-id"])
    if node == 3:
        raise RuntimeError("out of memory")
    reply = trained(message, context)
    if node == 1:
        reply.content["arrays"]["out.bias"] = Array(np.full(2, np.nan, np.float32))
    return reply


def test_replies_are_added_up_in_the_order_of_the_clients_whatever_order_they_come_in():
    results = [state(run(wrapped(FedAvg(fraction_evaluate=0.0), seed=seed), huge)) for seed in range(3)]
    assert all(torch.equal(value, results[0][name]) for result in results for name, value in result.items())


def huge(message, context):
    """Values whose sum depends on the order of adding."""
    node = int(context.node_config["partition-id"])
    (arrays,) = message.content.array_records.values()
    fresh = {
        name: Array(np.asarray(a.numpy() + np.float32([1e8, 1, -1e8, 0.1, 3][node]))) for name, a in arrays.items()
    }
    fresh[COUNTER] = arrays[COUNTER]
    return answer(message, ArrayRecord(fresh), node)


def test_the_global_generator_is_left_as_it_was():
    before = random.getstate()
    with sampling(Seed(0), 1):
        first = random.random()
    assert random.getstate() == before
    with sampling(Seed(0), 1):
        assert random.random() == first


def test_a_share_of_the_clients_is_chosen_by_seed_and_round():
    first, again, other = (
        state(run(wrapped(FedAvg(fraction_train=0.4, fraction_evaluate=0.0), seed=seed))) for seed in (0, 0, 1)
    )
    assert torch.equal(first["out.bias"], again["out.bias"])
    assert not torch.equal(first["out.bias"], other["out.bias"])


def test_what_the_method_tells_stands_among_the_metrics():
    result = run(wrapped(FedAvg(fraction_evaluate=0.0), Nudge()))
    assert result.train_metrics_clientapp[2]["equfl/nudged"] == 1.0
    assert result.train_metrics_clientapp[2]["train_loss"] == pytest.approx(2.666, abs=0.01)


def test_strategies_get_their_settings_to_the_clients_as_before():
    seen = []

    def app(message, context):
        seen.append(dict(message.content["config"]))
        return trained(message, context)

    run(wrapped(FedProx(proximal_mu=0.5, fraction_evaluate=0.0)), app, rounds=1)
    assert seen[0] == {"proximal-mu": 0.5, "server-round": 1}


def test_a_method_that_changes_updates_and_shares_has_the_strategy_see_the_changed_ones():
    class Second(type(Nudge())):
        def step(self, state, cohort, context):
            shares = torch.zeros_like(cohort.shares)
            shares[1] = 1.0
            aggregate = context.aggregate(2 * cohort.updates, shares)
            return self.advance(state, cohort, context.learning_rate * aggregate), {}

    result = state(run(wrapped(FedAvg(fraction_evaluate=0.0), Second()), rounds=1))
    before = initial().to_torch_state_dict()
    torch.testing.assert_close(result["out.bias"], before["out.bias"] + 2 * 0.1 * (1 - before["out.bias"]))


def test_a_method_that_aggregates_twice_is_told_that_strategies_remember():
    class Twice(type(Nudge())):
        def step(self, state, cohort, context):
            context.aggregate(cohort.updates, cohort.shares)
            return super().step(state, cohort, context)

    with pytest.raises(CohortError, match="aggregates twice"):
        run(wrapped(FedAvg(fraction_evaluate=0.0), Twice()))


def test_rounds_that_cannot_be_calibrated_are_the_strategys_own(caplog):
    method = EquFLSolve(synthesis=TrajectoryMatching(samples=16, iterations=1, match_steps=5))
    ours = state(run(wrapped(FedMedian(fraction_evaluate=0.0), method)))
    alone = state(run(wrapped(FedMedian(fraction_evaluate=0.0))))
    assert torch.equal(ours["out.weight"], alone["out.weight"])
    assert "is not calibrated: " in caplog.text


def test_rounds_saved_with_other_settings_are_not_gone_on_with(tmp_path):
    run(wrapped(FedAvg(fraction_evaluate=0.0), Nudge(), state=tmp_path), rounds=2)
    with pytest.raises(RunError, match=r"rounds = 2; wanted rounds = 3\. Give this federation a folder of its own"):
        run(wrapped(FedAvg(fraction_evaluate=0.0), Nudge(), state=tmp_path), rounds=3)


def test_a_run_that_is_done_gives_its_model_again(tmp_path):
    first, again = (run(wrapped(FedAvg(fraction_evaluate=0.0), Nudge(), state=tmp_path)) for _ in range(2))
    assert torch.equal(state(first)["out.bias"], state(again)["out.bias"])
    assert not again.train_metrics_clientapp


def test_arrays_of_another_model_are_refused_before_the_first_round():
    other = ArrayRecord({"weight": Array(np.zeros((2, 2), np.float32))})
    with pytest.raises(ConfigError, match=r"wanted the parameters .* of the given model"):
        run(wrapped(FedAvg()), arrays=other)
