"""``equfl compare PRESET``: methods and seeds run at once, one table, files; stopped and gone on with."""

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from equfl.cli import main

ENTRY = [sys.executable, "-c", "import sys; from equfl.cli import main; sys.exit(main())"]
TOY = ["--set", "data.name=toy", "--set", "data.rows=60", "--set", "rounds=12"]
QUICK = [*TOY, "--set", "method.synthesis.samples=16", "--set", "method.synthesis.iterations=5"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EQUFL_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_methods_and_seeds_become_one_table_and_files(capsys, here):
    words = ["compare", "quickstart", "--methods", "equfl", "--seeds", "2", *QUICK, "--out", "out"]
    assert main(words) == 0
    table, told = capsys.readouterr()
    lines = table.splitlines()
    assert lines[1] == "quickstart (simulated), target equalized odds, 12 rounds, seeds 0, 1"
    assert lines[3].split()[:2] == ["accuracy", "EO"]
    assert [line.split()[0] for line in lines[5:8]] == ["fedavg", "equfl", "against"]
    assert "Runs:     4 in runs" in table
    assert len(list(Path("runs").iterdir())) == 4
    assert "0 of 4 runs" in told

    summary = json.loads((here / "out" / "summary.json").read_text())
    methods = summary["targets"]["equalized_odds"]["methods"]
    results = [json.loads(path.read_text()) for path in here.glob("runs/*-equfl-*/result.json")]
    accuracies = [result["accuracy"] for result in sorted(results, key=lambda result: result["seed"])]
    assert methods["equfl"]["accuracy"]["values"] == accuracies
    assert f"{100 * sum(accuracies) / 2:.2f} % ±" in lines[6]
    rows = list(csv.DictReader((here / "out" / "runs.csv").read_text().splitlines()))
    assert [(row["method"], row["seed"]) for row in rows] == [
        ("fedavg", "0"), ("fedavg", "1"), ("equfl", "0"), ("equfl", "1"),
    ]  # fmt: skip

    assert (here / "out" / "frontier.svg").stat().st_size > 5000
    assert (here / "out" / "frontier.png").stat().st_size > 5000

    assert main(words) == 0
    again, told = capsys.readouterr()
    assert again.splitlines()[:12] == lines[:12], "all is read, and the same"


def test_a_comparison_that_was_killed_goes_on(capsys):
    words = ["compare", "quickstart", "--methods", "fedavg", "--seeds", "2", "--processes", "1", *TOY]
    words[-1] = "rounds=100"
    with subprocess.Popen([*ENTRY, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not list(Path().glob("runs/*/checkpoints/round-*")):
            assert process.poll() is None
        process.kill()
    assert not list(Path().glob("runs/*/result.json"))
    assert main(words) == 0
    assert len(list(Path().glob("runs/*/result.json"))) == 2
    assert "fedavg" in capsys.readouterr().out


def test_ctrl_c_ends_with_one_line_and_no_process(here):
    words = ["compare", "quickstart", "--methods", "fedavg", "--seeds", "1", *TOY]
    words[-1] = "rounds=100000"
    with subprocess.Popen(
        [*ENTRY, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where the tests run in the background, the shell has told them not to hear Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not list(Path().glob("runs/*/checkpoints/round-*")):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()  # waits for all who hold the streams, so for the workers, too
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "equfl: Stopped after 0 of 1 runs. The same command goes on."


def test_a_run_that_fails_is_counted_and_does_not_hide_the_others(capsys):
    words = ["compare", "quickstart", "--methods", "fedavg", *TOY]
    assert main([*words, "--seeds", "1"]) == 0
    (folder,) = Path("runs").iterdir()
    (folder / "result.json").write_text("{")
    capsys.readouterr()
    assert main([*words, "--seeds", "2"]) == 1
    table, told = capsys.readouterr()
    assert "1 run of fedavg failed" in table
    assert "fedavg, seed 0, failed:" in told
    assert "Runs:     1 in runs" in table


def test_without_matplotlib_there_is_everything_but_the_picture(capsys, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "equfl.plots.frontier", raising=False)
    assert main(["compare", "quickstart", "--methods", "fedavg", "--seeds", "1", *TOY, "--out", "out"]) == 0
    assert "pip install 'equfl[plots]'" in capsys.readouterr().out
    assert {path.name for path in (here / "out").iterdir()} == {"summary.json", "runs.csv"}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["quickstart", "more", "--seeds", "2"], "2 words before the options"),
        (["quickstart", "--methods", "equfel"], "no method is called 'equfel'"),
        (["quickstart", "--seeds", "none"], "--seeds none"),
        (["quickstart", "--processes", "0"], "--processes 0"),
        (["quickstart", "--targets", "EQ"], "EQ"),
        (["quickstar", "--seeds", "2"], "Did you mean 'quickstart'"),
        (["--seeds", "2"], "nothing to compare"),
    ],
    ids=str,
)
def test_what_cannot_be_compared_is_one_line_and_exit_code_2(capsys, words, complaint):
    assert main(["compare", *words]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert complaint in streams.err
    assert not Path("runs").exists()
