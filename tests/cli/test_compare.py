"""``equfl compare``: finished runs side by side."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from equfl.cli import main
from equfl.runs.reading import finished_result
from equfl.runs.run import run


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """EquFL and FedAvg on the toy federation."""
    place = tmp_path_factory.mktemp("runs")
    quick = {"method.synthesis.samples": 16, "method.synthesis.iterations": 5}
    run("quickstart", data="toy", rounds=12, out=place / "a", **quick)
    run("quickstart", data="toy", rounds=12, method="fedavg", out=place / "b")
    run("quickstart", data="toy", rounds=13, method="fedavg", out=place / "c")
    return place


def said(capsys, *words: str) -> str:
    assert main(["compare", *words]) == 0
    return capsys.readouterr().out


def test_runs_stand_side_by_side_with_their_change_against_fedavg(capsys, folders):
    table = said(capsys, str(folders / "a"), str(folders / "b"))
    header, _, equfl, change, fedavg = table.splitlines()[:5]
    assert header.split() == ["accuracy", "CAL", "CON", "DP", "EO"]
    result = finished_result(folders / "a")
    assert equfl.strip().startswith(f"equfl, quickstart (simulated), EO, seed 0  {'':4}"[:44])
    assert f"{100 * result['accuracy']:.2f} %" in equfl
    assert f"{result['bias']['demographic_parity']['pooled']:.4f}" in equfl
    assert change.strip().startswith("against FedAvg")
    difference = result["accuracy"] - result["baseline"]["accuracy"]
    assert f"{100 * difference:+.2f}".replace("-", "−") in change
    assert fedavg.strip().startswith("fedavg, quickstart (simulated), EO, seed 0")


def test_runs_that_words_cannot_tell_apart_are_called_by_their_folders(capsys, folders):
    table = said(capsys, str(folders / "b"), str(folders / "c"))
    assert re.search(r"^  b  ", table, re.MULTILINE)
    assert re.search(r"^  c  ", table, re.MULTILINE)


def test_comparing_loads_nothing_heavy(folders):
    code = "import sys; from equfl.cli import main; main(sys.argv[1:]); print('torch' in sys.modules)"
    words = ["compare", str(folders / "a")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [([], "nothing to compare"), (["nowhere"], "nowhere holds no run")],
    ids=["none", "nowhere"],
)
def test_what_cannot_be_compared_is_one_line_and_exit_code_2(capsys, words, complaint):
    assert main(["compare", *words]) == 2
    streams = capsys.readouterr()
    assert complaint in streams.err
    assert streams.err.count("\n") == 1


def test_a_run_that_is_not_finished_is_named_with_what_finishes_it(capsys, tmp_path):
    run("quickstart", data="toy", rounds=2, method="fedavg", out=tmp_path / "half")
    Path(tmp_path / "half" / "result.json").unlink()
    assert main(["compare", str(tmp_path / "half")]) == 2
    assert f"Write 'equfl resume {tmp_path / 'half'}'" in capsys.readouterr().err
