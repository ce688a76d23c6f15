import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from pyarrow import parquet

from equfl.config.codec import config_hash
from equfl.config.files import read_config
from equfl.core.errors import ConfigError, DataError
from equfl.data import tensor_file
from equfl.data.base import Grouping
from equfl.data.in_memory import InMemory
from equfl.data.toy import TRADES, Toy
from equfl.fairness.calibration import Calibration
from equfl.fairness.consistency import Consistency
from equfl.fairness.score import predict
from equfl.methods.base import Method
from equfl.methods.fedavg import FedAvg
from equfl.runs.execute import execute
from equfl.runs.watcher import Watcher


class Notes(Watcher):
    """Keeps what it is told."""

    def __init__(self):
        self.rounds, self.tasks, self.data = [], set(), None

    def working(self, task, done, total):
        self.tasks.add(task)

    def loaded(self, federation):
        self.data = federation.name

    def round(self, config, record):
        self.rounds.append((config.method.name, record.round))


def test_a_run_in_memory_and_one_in_a_folder_are_the_same(config, undisturbed, assert_same):
    assert_same(execute(config), undisturbed)


def test_the_baseline_is_fedavg_with_the_same_seed(config, undisturbed, assert_same):
    alone = execute(replace(config, method=FedAvg(), baseline=False))
    assert_same(alone, undisturbed.baseline)
    assert undisturbed.change.accuracy.before == alone.audit.accuracy.value


def test_the_rounds_that_are_fedavgs_in_both_are_computed_once(config):
    notes = Notes()
    execute(config, watcher=notes)
    assert notes.rounds == [("equfl", n) for n in range(1, 7)] + [("fedavg", n) for n in range(4, 7)]
    assert notes.data == "toy"
    assert "synthesising" in notes.tasks


def test_a_method_that_shares_no_round_is_compared_with_a_whole_run_of_fedavg(config):
    notes = Notes()
    run = execute(replace(config, method=Twice(), rounds=3), watcher=notes)
    assert notes.rounds == [(name, n) for name in ("twice", "fedavg") for n in range(1, 4)]
    assert torch.equal(run.baseline.state.vector, execute(replace(config, method=FedAvg(), rounds=3)).state.vector)


class Twice(Method):
    name = "twice"

    def step(self, state, cohort, context):
        return self.advance(
            state, cohort, 2 * context.learning_rate * context.aggregate(cohort.updates, cohort.shares)
        ), {"factor": 2.0}


def test_fedavg_is_its_own_baseline(config, without_seconds):
    run = execute(replace(config, method=FedAvg()))
    assert without_seconds(run.result["baseline"]) == {**without_seconds(run.result), "baseline": None}
    assert run.change is None


def test_without_a_baseline_there_is_none(config):
    run = execute(replace(config, baseline=False))
    assert (run.baseline, run.change, run.result["baseline"]) == (None, None, None)


def test_the_result_is_documented_and_stable(undisturbed):
    result = json.loads((undisturbed.folder / "result.json").read_text())
    assert result == json.loads(json.dumps(undisturbed.result))
    keys = {"preset", "method", "target", "seed", "rounds", "accuracy", "bias", "baseline", "clients", "seconds"}
    for one in (result, result["baseline"]):
        assert keys <= set(one)
        assert set(one["bias"]) == {"equalized_odds", "demographic_parity", "calibration", "consistency"}
        assert all(set(values) == {"pooled", "client_mean"} for values in one["bias"].values())
        assert set(one["seconds"]) == {"data", "clients", "server", "synthesis", "evaluation", "audit", "files"}
    assert (result["method"], result["baseline"]["method"]) == ("equfl", "fedavg")


def test_every_key_of_the_result_and_every_file_of_the_folder_is_documented(undisturbed):
    page = (Path(__file__).parents[3] / "docs" / "run-folder.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in page for key in undisturbed.result)
    assert all(f"`{path.name}`" in page for path in undisturbed.folder.iterdir())


def test_the_numbers_in_the_result_are_the_audits(config, undisturbed):
    network = config.model.network(undisturbed.federation.schema.shape, 2)
    test = undisturbed.federation.test.pooled
    predictions = predict(network, undisturbed.state.vector, {}, test.inputs)
    assert undisturbed.result["accuracy"] == (predictions == test.labels).double().mean().item()
    for notion in (config.target, Calibration()):
        assert undisturbed.result["bias"][notion.name]["pooled"] == notion.metric(predictions, test)


def test_the_last_evaluation_and_the_audit_agree(undisturbed):
    last = undisturbed.records[-1].evaluation
    assert last["accuracy"] == undisturbed.audit.accuracy.value
    assert last["equalized_odds/pooled"] == undisturbed.audit.bias["equalized_odds"].pooled.value


def test_a_notion_that_the_rows_cannot_show_is_null_and_says_why(undisturbed):
    assert undisturbed.result["bias"]["consistency"] == {"pooled": None, "client_mean": None}
    assert "neighbours" in undisturbed.result["left_out"]["consistency"]


def test_a_target_that_the_rows_cannot_show_is_refused(config):
    with pytest.raises(DataError, match="without neighbours"):
        execute(replace(config, target=Consistency()))


def test_every_other_grouping_of_the_rows_is_audited_too(config):
    toy = Toy(clients=2, rows=30).load()
    trades = toy.test.pooled.inputs[:, 2:5].argmax(dim=1)
    federation = replace(toy, groupings={"trade": Grouping(TRADES, trades)})
    run = execute(replace(config, data=InMemory.of(federation)), federation=federation)
    assert {name: [group.name for group in audit.groups] for name, audit in run.audits.items()} == {
        "sex": ["woman", "man"],
        "trade": list(TRADES),
    }
    assert run.audit is run.audits["sex"]
    assert run.audits["trade"].groups[0].rows == (trades == 0).sum()


def test_the_rounds_are_a_long_table(undisturbed):
    table = parquet.read_table(undisturbed.folder / "rounds.parquet").to_pylist()
    (accuracy,) = [row for row in table if row["round"] == 4 and row["measure"] == "accuracy"]
    assert accuracy == {
        "round": 4,
        "set": "test",
        "measure": "accuracy",
        "scope": "pooled",
        "value": undisturbed.records[3].evaluation["accuracy"],
    }
    diagnostics = {row["measure"]: row["value"] for row in table if row["round"] == 4 and row["set"] == "server"}
    assert diagnostics == undisturbed.records[3].diagnostics
    assert "synthesis/matching_loss" in diagnostics
    assert {row["set"] for row in table} == {"clients", "test", "server", "time"}


def test_the_audit_is_a_long_table_with_the_clients_by_name(undisturbed):
    table = parquet.read_table(undisturbed.folder / "audit.parquet").to_pylist()
    assert {row["grouping"] for row in table} == {"sex"}
    assert {row["group"] for row in table if row["scope"] == "group"} == {"woman", "man"}
    assert {row["client"] for row in table if row["scope"] == "client"} == {"client 0", "client 1"}
    pooled = [row for row in table if row["measure"] == "equalized_odds" and row["scope"] == "pooled"]
    assert [row["value"] for row in pooled] == [undisturbed.audit.bias["equalized_odds"].pooled.value]


def test_the_servers_own_data_is_a_file_of_its_own(undisturbed):
    tensors, _ = tensor_file.read(undisturbed.folder / "synthetic.safetensors")
    assert torch.equal(tensors["inputs"], undisturbed.state.memory["synthetic/inputs"])


def test_the_folder_knows_its_config_and_what_it_was_computed_with(config, undisturbed):
    assert config_hash(read_config(undisturbed.folder / "config.toml")) == undisturbed.result["config"]
    about = json.loads((undisturbed.folder / "environment.json").read_text())
    assert about["packages"]["torch"] == version("torch")
    assert about["data"]["facts"]["simulated"] == "yes"


def test_the_number_of_threads_is_the_runs_and_afterwards_what_it_was(config):
    seen = []

    class Threads(Watcher):
        def round(self, config, record):
            seen.append(torch.get_num_threads())

    before = torch.get_num_threads()
    execute(replace(config, threads=before + 1, rounds=2, method=FedAvg()), watcher=Threads())
    assert (set(seen), torch.get_num_threads()) == ({before + 1}, before)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card")
def test_a_graphics_card_that_is_not_there_is_asked_for_in_vain(config):
    with pytest.raises(ConfigError, match="Choose device = 'cpu'"):
        execute(replace(config, device="cuda"))
