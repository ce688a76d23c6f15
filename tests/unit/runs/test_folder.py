import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from equfl.config.files import config_text
from equfl.core.errors import Damaged, DataMissing, RunError
from equfl.data.in_memory import InMemory
from equfl.data.toy import Toy
from equfl.runs.execute import execute
from equfl.runs.folder import RunFolder
from equfl.runs.identity import config_of
from equfl.runs.reading import finished_result
from equfl.runs.run import resume


@pytest.fixture
def copy(undisturbed, tmp_path) -> Path:
    """A finished run that may be damaged, without its result, so that there is something to be done."""
    shutil.copytree(undisturbed.folder, tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    return tmp_path / "run"


def checkpoints(folder):
    return sorted((folder / "checkpoints").glob("round-*"))


def truncate(path):
    path.write_bytes(path.read_bytes()[:-7])


def alter(path):
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", [truncate, alter])
def test_a_damaged_checkpoint_is_told_and_the_one_before_is_used(copy, undisturbed, damage, assert_same):
    damage(checkpoints(copy)[-1])
    with pytest.warns(UserWarning, match=r"round-00006\.safetensors is damaged; going on from round 5\.$"):
        run = resume(copy)
    assert_same(run, undisturbed)


def test_without_a_whole_checkpoint_there_is_nothing_to_go_on_with(copy):
    for path in checkpoints(copy):
        truncate(path)
    with pytest.raises(Damaged, match=r"no whole checkpoint \(round-00006.*, round-00005.*\).*delete this one"):
        resume(copy)


def test_when_all_checkpoints_are_gone_the_rounds_alone_do_not_do(copy):
    shutil.rmtree(copy / "checkpoints")
    with pytest.raises(Damaged, match="no whole checkpoint"):
        resume(copy)


def test_rounds_that_were_altered_are_not_gone_on_with(copy):
    path = copy / "rounds.jsonl"
    path.write_text(path.read_text().replace('"round": 1,', '"round": 9,', 1))
    with pytest.raises(Damaged, match="no whole checkpoint"):
        resume(copy)


def test_a_lost_baseline_is_computed_again_from_its_beginning(copy, undisturbed, assert_same):
    shutil.rmtree(copy / "baseline")
    assert_same(resume(copy), undisturbed)


def test_the_newest_two_checkpoints_are_there_and_what_lasts_is_written_once(undisturbed):
    assert [path.name for path in checkpoints(undisturbed.folder)] == [f"round-0000{n}.safetensors" for n in (5, 6)]
    memory = list((undisturbed.folder / "checkpoints").glob("memory-*"))
    assert len(memory) == len(undisturbed.state.memory)


def test_another_config_is_refused_and_what_differs_is_named(config, copy):
    with pytest.raises(
        RunError, match=r"another run \(method is \"?equfl.* there and \"?equfl|method.gamma is 1.0 there"
    ):
        execute(replace(config, method=replace(config.method, gamma=2.0)), out=copy)
    with pytest.raises(RunError, match="seed is 0 there and 1 here"):
        execute(replace(config, seed=1), out=copy)


def test_other_rows_than_at_the_beginning_are_refused(copy):
    path = copy / "environment.json"
    about = json.loads(path.read_text())
    about["data"]["fingerprint"] = "00000000"
    path.write_text(json.dumps(about))
    with pytest.raises(RunError, match="begun on other rows than 'toy' has now"):
        resume(copy)


def test_a_folder_of_another_format_is_refused(copy):
    path = copy / "environment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(RunError, match=r"has the format 99 .*; wanted format 2\."):
        resume(copy)


def test_packages_of_another_version_are_told(copy, undisturbed, assert_same):
    path = copy / "environment.json"
    about = json.loads(path.read_text())
    about["packages"]["torch"] = "1.0"
    path.write_text(json.dumps(about))
    with pytest.warns(UserWarning, match=r"torch 1\.0 there, .* here; the last digits may differ"):
        assert_same(resume(copy), undisturbed)


@pytest.mark.parametrize("name", ["environment.json", "result.json"])
def test_a_file_that_is_no_json_any_more_is_named(copy, name):
    (copy / name).write_text("{")
    with pytest.raises(Damaged, match=f"{name} is damaged"):
        resume(copy)


def test_a_config_that_was_spoilt_is_named_as_such(copy):
    with (copy / "config.toml").open("a") as file:
        file.write("\nnonsense = 1\n")
    with pytest.raises(Damaged, match=r"config that cannot be read: .*nonsense"):
        resume(copy)


def test_a_folder_with_something_else_in_it_is_left_alone(config, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match="not empty and holds no run"):
        execute(config, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("made", [True, False])
def test_a_folder_without_a_run_cannot_be_resumed(tmp_path, made):
    folder = tmp_path / "empty"
    if made:
        folder.mkdir()
    with pytest.raises(RunError, match="holds no run" if made else "there is no folder"):
        resume(folder)


def test_a_result_is_asked_of_finished_runs_only(copy, tmp_path):
    with pytest.raises(RunError, match=r"not finished.* Write 'equfl resume"):
        finished_result(copy)
    with pytest.raises(RunError, match="holds no run"):
        finished_result(tmp_path)


def test_a_run_whose_data_cannot_be_had_leaves_no_trace(tmp_path, config):
    with pytest.raises(DataMissing):
        execute(replace(config, data=InMemory("1234")), out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_half_finished_run_whose_data_is_gone_stays(copy, config):
    (copy / "config.toml").write_text(config_text(replace(config, data=InMemory("1234"))))
    (copy / "environment.json").unlink()
    with pytest.raises(DataMissing, match="made by a program"):
        resume(copy)
    assert (copy / "config.toml").exists()


def test_a_federation_in_memory_can_be_gone_on_with_by_the_program_that_has_it(config, tmp_path, assert_same):
    federation = Toy(clients=2, rows=30).load()
    known = replace(config, data=InMemory.of(federation))
    first = execute(known, federation=federation, out=tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    assert_same(execute(known, federation=federation, out=tmp_path / "run"), first)
    with pytest.raises(DataMissing, match=r"Hand the federation to equfl\.run again"):
        resume(tmp_path / "run")


def test_leftovers_of_a_killed_process_are_swept_away_and_nothing_else(copy, undisturbed, assert_same):
    (copy / ".result.json.abc123").write_text("half")
    (copy / "checkpoints" / ".round-00006.safetensors.xyz").write_text("half")
    (copy / ".notes").write_text("mine")
    assert_same(resume(copy), undisturbed)
    assert [path.name for path in copy.rglob(".*")] == [".notes"]


def test_only_one_process_writes_in_a_folder(config, tmp_path):
    pytest.importorskip("fcntl")
    with RunFolder.opened(tmp_path / "run", config), pytest.raises(RunError, match="another process is writing"):
        execute(config, out=tmp_path / "run")
    execute(config, out=tmp_path / "run")


def test_a_folder_that_cannot_be_made_is_one_sentence(config, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match=r"file/run cannot be written \(Not a directory\); wanted a folder with space"):
        execute(config, out=tmp_path / "file" / "run")


def test_a_folder_that_may_not_be_written_is_one_sentence(config, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    if os.access(tmp_path / "locked", os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(RunError, match="Permission denied"):
        execute(config, out=tmp_path / "locked" / "run")


FULL = """
import resource, signal, sys
from equfl.core.errors import RunError
from equfl.runs.run import resume, run
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    run("quickstart", data="toy", method="fedavg", rounds=40, out=sys.argv[1])
except RunError as error:
    print(error)
"""


def test_a_disk_that_fills_up_is_one_sentence_and_the_run_goes_on_when_there_is_room(tmp_path):
    # No file may grow beyond a limit: what the system then says is what it says of a full disk.
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "run"), "9000"], capture_output=True, text=True, check=True
    )
    assert "cannot be written (File too large)" in done.stdout
    assert "goes on with 'equfl resume'" in done.stdout
    assert not (tmp_path / "run" / "result.json").exists()
    rounds = len((tmp_path / "run" / "rounds.jsonl").read_bytes().splitlines())
    assert 0 < rounds < 40
    run = resume(tmp_path / "run")
    assert [record.round for record in run.records] == list(range(1, 41))


def test_config_of_reads_what_was_written(config, undisturbed):
    assert config_of(undisturbed.folder) == config
