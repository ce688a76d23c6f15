"""Epsilon stands beside every private result: in the file, at the end of a run, and where runs are compared."""

import sys
from pathlib import Path

import pytest

from equfl.cli import main
from equfl.runs.reading import finished_result

QUICK = ["--set", "data=toy", "--set", "rounds=3", "--method", "fedavg"]


@pytest.fixture
def said(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> str:
        assert main([*words]) == 0
        return capsys.readouterr().out

    return said


def run(said, name: str, *settings: str) -> str:
    return said("run", "quickstart", *QUICK, "--out", name, *(word for one in settings for word in ("--set", one)))


def test_a_private_run_ends_with_its_guarantee(said):
    shown = run(said, "a", "training=dp_sgd", "training.noise=4")
    privacy = finished_result(Path("a"))["privacy"]
    assert (privacy["unit"], privacy["delta"], privacy["obstacle"]) == ("row", 1e-5, "")
    assert f"Privacy:  ε = {privacy['epsilon']:.3g} at δ = 1e-05, for every row" in shown


def test_a_guarantee_that_means_nothing_is_called_so(said):
    shown = run(said, "a", "training=noisy_update", "training.noise=0.1")
    assert "(too much to mean anything) at δ = 1e-05, for every client with all its rows" in shown


def test_noise_that_guarantees_nothing_says_why(said):
    shown = run(said, "a", "training=noisy_update", "training.noise=0")
    assert "Privacy:  none, because the training's noise is 0" in shown
    assert finished_result(Path("a"))["privacy"]["epsilon"] is None


def test_a_run_without_noise_says_nothing_of_privacy(said):
    assert "Privacy" not in run(said, "a")
    assert finished_result(Path("a"))["privacy"] is None
    assert "Privacy" not in said("compare", "a")


def test_comparing_shows_what_each_run_guarantees(said):
    run(said, "plain")
    run(said, "rows", "training=dp_sgd", "training.noise=4")
    run(said, "clients", "training=noisy_update", "training.noise=4")
    table = said("compare", "plain", "rows", "clients")
    lines = table[table.index("Privacy") :].splitlines()
    assert lines[1].split()[:3] == ["rows", "ε", "="]
    assert lines[2].split()[:3] == ["clients", "ε", "="]
    assert "plain" not in table[table.index("Privacy") :]


def test_a_missing_accountant_is_told_before_the_first_round(said, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    assert main(["run", "quickstart", *QUICK, "--out", "a", "--set", "training=dp_sgd"]) == 2
    assert "Install equfl[privacy]" in capsys.readouterr().err
