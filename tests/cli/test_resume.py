"""``equfl resume``: after a real ``kill -9``, in a process of its own, as a user would do it."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from equfl.cli import main
from equfl.data import tensor_file

ENTRY = [sys.executable, "-c", "import sys; from equfl.cli import main; sys.exit(main())"]
SETTINGS = ["data=toy", "rounds=40", "method.synthesis.iterations=400", "method.synthesis.samples=50"]
RUN = ["run", "quickstart", *(word for setting in SETTINGS for word in ("--set", setting))]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def without_seconds(result):
    if isinstance(result, dict):
        return {name: without_seconds(value) for name, value in result.items() if name != "seconds"}
    return result


def result(folder: str):
    return without_seconds(json.loads(Path(folder, "result.json").read_text()))


def model(folder: str):
    tensors, _ = tensor_file.read(Path(folder, "checkpoints/round-00040.safetensors"))
    return tensors["vector"]


def test_a_killed_run_is_gone_on_with_and_ends_as_if_nothing_had_happened(capsys):
    assert main([*RUN, "--out", "undisturbed"]) == 0
    with subprocess.Popen([*ENTRY, *RUN, "--out", "killed"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        # Twenty rounds are safe: now it synthesises.
        while not Path("killed/checkpoints/round-00020.safetensors").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -9
    assert not Path("killed/result.json").exists()

    done = subprocess.run([*ENTRY, "resume", "killed"], capture_output=True, text=True, check=True)
    assert result("killed") == result("undisturbed")
    assert torch.equal(model("killed"), model("undisturbed"))
    capsys.readouterr()
    assert main(["resume", "killed"]) == 0
    assert capsys.readouterr().out.startswith("This run is finished already.")
    assert "equfl on toy (simulated)" in done.stdout


@pytest.mark.filterwarnings("default")  # as for a user
def test_the_same_run_command_goes_on_too(capsys):
    words = ["run", "quickstart", "--set", "data=toy", "--method", "fedavg", "--set", "rounds=6", "--out", "here"]
    assert main(words) == 0
    expected = result("here")
    Path("here/result.json").unlink()
    Path("here/checkpoints/round-00006.safetensors").write_bytes(b"")
    assert main(words) == 0
    streams = capsys.readouterr()
    assert "equfl: here: round-00006.safetensors is damaged; going on from round 5.\n" in streams.err
    assert result("here") == expected


@pytest.mark.parametrize(("words", "complaint"), [(["nowhere"], "there is no folder nowhere"), ([], "folder|DIR")])
def test_what_cannot_be_resumed_is_one_line_and_exit_code_2(capsys, words, complaint):
    assert main(["resume", *words]) == 2
    streams = capsys.readouterr()
    assert re.search(complaint, streams.err)
    assert streams.err.count("\n") == 1
