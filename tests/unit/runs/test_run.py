from dataclasses import replace
from pathlib import Path

import pytest
import torch

import equfl
from equfl.cli.screen import Screen
from equfl.cli.summary import show
from equfl.core.errors import EquflError
from equfl.data.in_memory import InMemory
from equfl.data.toy import Toy
from equfl.methods.fedavg import FedAvg
from equfl.runs.watcher import Watcher

TOY = Toy(clients=2, rows=30)


def test_a_preset_is_run_with_settings_by_value_or_by_name():
    run = equfl.run("quickstart", data=TOY, method="fedavg", target="demographic_parity", rounds=2, seed=5)
    assert (run.config.data, run.config.method, run.config.seed) == (TOY, FedAvg(), 5)
    assert (run.config.preset, len(run.records), run.folder) == ("quickstart", 2, None)


def test_nothing_is_written_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    equfl.run("quickstart", data=TOY, method="fedavg", rounds=1)
    assert not list(tmp_path.iterdir())


def test_a_config_is_run_with_deeper_settings_changed(config):
    run = equfl.run(config, method=FedAvg(), rounds=2, **{"training.batch_size": 8})
    assert run.config == replace(config, method=FedAvg(), rounds=2, training=replace(config.training, batch_size=8))


def test_a_federation_is_run_as_it_is():
    federation = TOY.load()
    run = equfl.run(federation, method="fedavg", rounds=2)
    assert run.federation.train is federation.train or torch.equal(
        run.federation.train.pooled.inputs, federation.train.pooled.inputs
    )
    assert run.config.data == InMemory.of(federation)
    assert run.result["data"] == "toy"


def test_a_table_is_run_by_its_columns(tmp_path):
    rows = [f"{n % 7},{'fm'[n % 2]},site {n % 3},{int(n % 7 > n % 3)}" for n in range(180)]
    (tmp_path / "people.csv").write_text("\n".join(["skill,sex,site,hired", *rows]))
    run = equfl.run(tmp_path / "people.csv", label="hired", sensitive="sex", client="site", method="fedavg", rounds=2)
    assert run.federation.clients == ("site 0", "site 1", "site 2")


def test_each_of_several_sensitive_columns_is_audited_alone_as_if_it_were_the_only_one(tmp_path):
    rows = [f"{n % 7},{'fm'[n % 2]},{'xy'[n % 5 % 2]},site {n % 3},{int(n % 7 > n % 3)}" for n in range(300)]
    (tmp_path / "people.csv").write_text("\n".join(["skill,sex,staff,site,hired", *rows]))
    settings = {"label": "hired", "client": "site", "method": "fedavg", "rounds": 5}
    both = equfl.run(tmp_path / "people.csv", sensitive=("sex", "staff"), **settings)
    assert [*both.audits] == ["sex x staff", "sex", "staff"]
    assert [group.name for group in both.audit.groups] == ["f, x", "f, y", "m, x", "m, y"]
    # The model and its predictions are the same: only the groups that are compared differ.
    sex = equfl.run(tmp_path / "people.csv", sensitive="sex", **settings)
    assert sex.alone == {} == sex.result["alone"]
    alone = both.alone["sex"]
    assert [group.name for group in alone.groups] == ["f", "m"]
    for name, bias in alone.bias.items():
        assert bias.pooled.value == sex.audit.bias[name].pooled.value
        assert bias.client_mean == sex.audit.bias[name].client_mean
        assert bias.pooled.low <= bias.pooled.value <= bias.pooled.high
        assert both.result["alone"]["sex"]["bias"][name]["low"] == bias.pooled.low
    assert [group.positive_rate.value for group in alone.groups] == [
        group.positive_rate.value for group in sex.audit.groups
    ]


def test_a_federation_that_nothing_can_be_learnt_from_is_refused(config):
    federation = TOY.load()
    inputs = federation.train.pooled.inputs.clone()
    inputs[3, 0] = float("nan")
    shards = replace(federation.train, pooled=replace(federation.train.pooled, inputs=inputs))
    with pytest.raises(EquflError, match=r"input 0 \(skill\) of a row to train on is nan, at the client 'client 0'"):
        equfl.run(replace(federation, train=shards), method="fedavg", rounds=1)


def test_a_misspelt_setting_is_refused():
    with pytest.raises(EquflError, match="runds: unknown key"):
        equfl.run("quickstart", runds=3)


def test_a_run_in_a_folder_is_gone_on_with(tmp_path, assert_same):
    class Stop(Watcher):
        def round(self, config, record):
            if record.round == 2:
                raise KeyboardInterrupt

    settings = {"data": TOY, "method": "fedavg", "rounds": 4}
    with pytest.raises(KeyboardInterrupt):
        equfl.run("quickstart", out=tmp_path / "run", watcher=Stop(), **settings)
    assert_same(equfl.resume(tmp_path / "run"), equfl.run("quickstart", **settings))


def test_the_loop_can_be_driven_by_hand():
    config = equfl.load_preset("quickstart", data=TOY, method="fedavg", rounds=5)
    rounds = equfl.simulate(
        config.data.load(),
        method=config.method,
        target=config.target,
        notions=[config.target],
        model=config.model,
        training=config.training,
        aggregation=config.aggregation,
        engine=config.engine,
        rounds=config.rounds,
    )
    record, state = next(pair for pair in rounds if pair[0].round == 2)
    assert record.round == state.round == 2


def test_what_became_of_the_clients_is_added_up_and_who_broke_is_told(capsys):
    federation = Toy(clients=3, rows=30).load()
    rows = federation.train.pooled
    inputs = rows.inputs.clone()
    inputs[:30] *= 1e38  # the first client's numbers are beyond all reason
    broken = replace(federation, train=replace(federation.train, pooled=replace(rows, inputs=inputs)))
    run = equfl.run(broken, method="fedavg", rounds=4)
    assert run.result["clients"] == {"not_finite": 4}
    show(Screen(), run.result, Path("here"), lasted=1.0, again="")
    assert "4 updates were not finite and left out" in capsys.readouterr().out


def test_of_a_run_in_which_everybody_was_heard_nothing_is_told(capsys):
    run = equfl.run("quickstart", data=TOY, method="fedavg", rounds=1)
    assert run.result["clients"] == {}
    show(Screen(), run.result, Path("here"), lasted=1.0, again="")
    assert "not finite" not in capsys.readouterr().out
