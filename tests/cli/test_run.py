"""``equfl run``: from one line to a table, a folder, and one sentence for whatever goes wrong."""

import io
import json
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from equfl.aggregation.base import Aggregation
from equfl.cli import main
from equfl.cli.progress import progress
from equfl.config.files import config_text
from equfl.config.presets import load_preset
from equfl.core.component import known
from equfl.core.protocol import RoundRecord

TOY = ["--set", "data.name=toy", "--set", "data.rows=60", "--set", "rounds=12"]
QUICK = [*TOY, "--set", "method.synthesis.samples=16", "--set", "method.synthesis.iterations=5"]
ENTRY = [sys.executable, "-c", "import sys; from equfl.cli import main; sys.exit(main())"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EQUFL_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def said(capsys):
    """What a command prints, which must end well: the table, and what came while it was computed."""

    def run(*words: str) -> tuple[str, str]:
        assert main([*words]) == 0
        return capsys.readouterr()

    return run


def refused(capsys, *words: str) -> str:
    assert main([*words]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    complaint = streams.err.splitlines()[-1]
    assert complaint.startswith("equfl: ")
    return complaint


def the_folder() -> Path:
    (folder,) = Path("runs").iterdir()
    return folder


def without_seconds(result):
    if isinstance(result, dict):
        return {name: without_seconds(value) for name, value in result.items() if name != "seconds"}
    return result


def test_a_run_ends_with_a_table_of_everything_that_changed(said):
    table, _ = said("run", "quickstart", *QUICK)
    result = json.loads((the_folder() / "result.json").read_text())
    assert table.startswith("\nequfl on toy (simulated), target equalized odds, 12 rounds, seed 0\n")
    assert re.search(
        rf"accuracy +{100 * result['baseline']['accuracy']:.2f} % +{100 * result['accuracy']:.2f} %", table
    )
    for name, values in result["bias"].items():
        for scope, label in (("pooled", name.replace("_", " ")), ("client_mean", "mean over clients")):
            if values[scope] is not None:
                assert re.search(
                    rf"{label} +{result['baseline']['bias'][name][scope]:.4f} +{values[scope]:.4f} ", table
                )
    assert all(f"{phase} " in table for phase in result["seconds"])
    assert f"Files:    {the_folder()}" in table


def test_how_far_the_servers_rows_carry_is_told_in_one_line(said):
    table, _ = said("run", "quickstart", *QUICK)
    found = json.loads((the_folder() / "result.json").read_text())["transfer"]["equalized_odds"]
    lines = [line for line in table.splitlines() if line.startswith("Transfer: equalized odds ")]
    (line,) = lines
    assert f"{found['synthetic_before']:.4f} to {found['synthetic_after']:.4f} on the server's rows" in line
    assert f"{found['real_before']:.4f} to {found['real_after']:.4f} on the clients'" in line
    assert f"cosine of the gradients {found['cosine_of_rates']:.2f}".replace("-", "−") in line


def test_fedavg_has_nothing_to_transfer(said):
    table, _ = said("run", "quickstart", *TOY, "--method", "fedavg")
    assert "Transfer" not in table
    assert json.loads((the_folder() / "result.json").read_text())["transfer"] is None


def test_a_run_whose_server_was_given_real_rows_says_that_it_is_a_control(said):
    words = "A control: the server was given real rows of the clients, which no server has."
    table, _ = said("run", "quickstart", *TOY, "--set", "method.synthesis=oracle")
    assert words in table
    assert json.loads((the_folder() / "result.json").read_text())["real_rows"] is True
    assert not (the_folder() / "synthetic.safetensors").exists()
    table, _ = said("run", "quickstart", *TOY, "--set", "method.synthesis=random_rows", "--out", "other")
    assert words not in table
    assert json.loads(Path("other/result.json").read_text())["real_rows"] is False
    assert Path("other/synthetic.safetensors").exists()


def test_a_change_is_marked_where_it_is_beyond_two_standard_errors_and_only_there(said):
    table, _ = said("run", "quickstart", *QUICK)
    change = json.loads((the_folder() / "result.json").read_text())["change"]
    marked = {scope["beyond_chance"] for name in change.values() for scope in name.values()}
    assert marked == {True, False}, "else this test sees nothing"
    lines = iter(table.splitlines())
    for name in change:
        for scope in change[name].values():
            label = name.replace("_", " ") if scope is change[name]["pooled"] else "mean over clients"
            line = next(line for line in lines if line.strip().startswith(label))
            assert line.endswith("*") == scope["beyond_chance"]


def test_the_folder_is_named_after_the_run_and_its_config(said):
    said("run", "quickstart", "--method", "fedavg", "--target", "DP", "--seed", "7", *TOY)
    assert re.fullmatch(r"quickstart-fedavg-demographic_parity-seed7-[0-9a-f]{12}", the_folder().name)


def test_fedavg_alone_is_compared_with_nothing(said):
    table, _ = said("run", "quickstart", "--method", "fedavg", *TOY)
    assert "change" not in table
    assert "equfl run quickstart --set data.name=toy --set data.rows=60 --set rounds=12 --method equfl" in table


def test_without_a_terminal_there_are_about_ten_lines_and_no_control_characters(said):
    _, lines = said("run", "quickstart", "--method", "fedavg", *TOY, "--set", "rounds=100")
    assert 10 <= sum(line.startswith("fedavg: round ") for line in lines.splitlines()) <= 12
    assert re.search(r"^fedavg: round 100 of 100  accuracy \d\d\.\d\d %  EO 0\.\d{4}$", lines, re.MULTILINE)
    assert "\x1b" not in lines


def test_the_data_is_introduced_with_its_facts(said):
    _, lines = said("run", "quickstart", "--method", "fedavg", *TOY)
    assert "Data: toy, 5 clients, 300 rows to train on, 300 to test on, groups woman, man" in lines
    assert re.search(r"^  simulated +yes$", lines, re.MULTILINE)


def test_what_the_next_command_says_can_be_typed(said):
    table, _ = said("run", "quickstart", *QUICK)
    (command,) = re.findall(r"^Next: +equfl (run .*)$", table, re.MULTILINE)
    again, _ = said(*command.split())
    assert again.startswith("\nequfl on toy (simulated), target demographic parity")


def test_the_next_command_keeps_the_method(said):
    table, _ = said("run", "quickstart", "--method", "equfl", *QUICK)
    assert f"equfl run quickstart --method equfl {' '.join(QUICK[:2])}" in table


def test_a_finished_run_is_shown_and_not_computed_again(said):
    first, _ = said("run", "quickstart", *QUICK)
    again, progress = said("run", "quickstart", *QUICK)
    assert again.startswith("This run is finished already.")
    assert again.splitlines()[2:18] == first.splitlines()[1:17]
    assert progress == ""


def test_a_table_of_ones_own_is_run(said, here):
    rows = [f"{n % 7},{'fm'[n % 2]},site {n % 3},{int(n % 7 > n % 3)}" for n in range(180)]
    (here / "people.csv").write_text("\n".join(["skill,sex,site,hired", *rows]))
    columns = ["--label", "hired", "--sensitive", "sex", "--client", "site"]
    table, lines = said("run", "people.csv", *columns, "--method", "fedavg", "--set", "rounds=5")
    assert "fedavg on people, target equalized odds" in table
    assert "groups f, m" in lines
    assert f"equfl run people.csv {' '.join(columns)} --set rounds=5 --method equfl" in table


def test_with_several_sensitive_columns_each_is_also_told_alone(said, here):
    rows = [f"{n % 7},{'fm'[n % 2]},{('old', 'new')[n % 5 % 2]},site {n % 3},{int(n % 7 > n % 3)}" for n in range(300)]
    (here / "people.csv").write_text("\n".join(["skill,sex,staff,site,hired", *rows]))
    words = ["run", "people.csv", "--label", "hired", "--sensitive", "sex", "--sensitive", "staff", "--client", "site"]
    table, _ = said(*words, *QUICK[6:], "--set", "rounds=12")
    result = json.loads((the_folder() / "result.json").read_text())
    assert [*result["alone"]] == [*result["baseline"]["alone"]] == ["sex", "staff"]
    for column, alone in result["alone"].items():
        assert re.search(rf"^  {column} alone +fedavg +equfl +95 % interval$", table, re.MULTILINE)
        assert "consistency" not in alone["bias"], "it is the same however the rows are divided"
        for name, values in alone["bias"].items():
            before = result["baseline"]["alone"][column]["bias"][name]["pooled"]
            numbers = f"{before:.4f} +{values['pooled']:.4f} +{values['low']:.4f} to {values['high']:.4f}"
            assert re.search(rf"^  {name.replace('_', ' ')} +{numbers}$", table, re.MULTILINE)
        for group, rates in alone["groups"].items():
            assert re.search(rf"^  {group} +{rates['rows']} +{100 * rates['base_rate']:.2f} % ", table, re.MULTILINE)
    again, _ = said(*words, *QUICK[6:], "--set", "rounds=12")
    assert "sex alone" in again


def test_a_config_file_is_run(said, here):
    config = load_preset("quickstart", data="toy", method="fedavg", rounds=3, preset="mine")
    (here / "c.toml").write_text(config_text(config))
    table, _ = said("run", "c.toml")
    assert "fedavg on toy (simulated), target equalized odds, 3 rounds" in table
    assert the_folder().name.startswith("mine-fedavg")


@pytest.mark.parametrize("rule", known(Aggregation))
def test_every_aggregation_rule_can_be_chosen(said, rule):
    said("run", "quickstart", "--method", "fedavg", *TOY, "--set", "rounds=2", "--set", f"aggregation={rule}")
    assert f'[aggregation]\nname = "{rule}"' in (the_folder() / "config.toml").read_text()


def test_another_run_in_the_same_folder_is_refused(capsys, said):
    said("run", "quickstart", "--method", "fedavg", *TOY, "--out", "here")
    assert "seed is 0 there and 1 here" in refused(
        capsys, "run", "quickstart", "--method", "fedavg", *TOY, "--out", "here", "--seed", "1"
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["income-sx"], r"no preset is called 'income-sx'.*Did you mean 'income-sex'"),
        (["--method", "fedagv"], r"method: no method is called 'fedagv'.*Did you mean 'fedavg'"),
        (["--target", "XO"], r"target: no notion is called 'XO'; wanted one of calibration"),
        (["--seed", "x"], r"seed = 'x'; wanted a whole number"),
        (["--set", "rounds"], r"the setting 'rounds'; wanted path=value"),
        (["--set", "runds=3"], r"runds: unknown key.*Did you mean 'rounds'"),
        (["--set", "method.gama=3"], r"method\.gama: unknown key.*Did you mean 'gamma'"),
        (["--set", 'rounds="many"'], r"rounds = 'many'; wanted a whole number"),
        (["--set", "rounds=0"], r"rounds = 0; wanted a whole number of at least 1"),
        (["--label", "x"], r"--label was given with 'quickstart', which is not a table"),
        (["missing.csv", "--label", "a", "--sensitive", "b", "--client", "c"], r"there is no file .*missing\.csv"),
        (["missing.toml"], r"missing\.toml cannot be read \(No such file or directory\)"),
        (["."], r"\. is a folder; wanted a preset"),
        (["--set", "device=cuda", "--set", "data=toy"], r"device = 'cuda' without a graphics card"),
        (
            ["--set", "data=toy", "--set", "training.learning_rate=1e30"],
            r"no update could be used in 10 rounds in a row.*Lower training\.learning_rate",
        ),
        (["--set", "data=toy", "--out", "/dev/null/run"], r"/dev/null/run cannot be written \(Not a directory\)"),
        (
            ["--set", "data.name=toy", "--set", "data.clients=4", "--set", "aggregation=multi_krum"],
            r"wanted at least 5",
        ),
        (["--set", "data=in_memory"], r"made by a program and is gone with it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_used_is_one_line_and_exit_code_2(capsys, words, complaint):
    assert re.search(complaint, refused(capsys, "run", *words))


@pytest.mark.parametrize(
    ("column", "value", "complaint"),
    [
        ("hired", lambda n: 1, "the label 'hired' has one value only"),
        ("sex", lambda n: "f", "sex is 'f' in every row"),
        ("site", lambda n: "here", "'site' names 1 client"),
        ("skill", lambda n: "inf" if n == 5 else n, "the column 'skill' is infinite"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_line_and_exit_code_2(capsys, here, column, value, complaint):
    lines = ["skill,sex,site,hired"]
    for n in range(120):
        row = {"skill": n % 7, "sex": "fm"[n % 2], "site": f"s{n % 3}", "hired": n % 5 // 3}
        lines.append(",".join(str(cell) for cell in {**row, column: value(n)}.values()))
    (here / "people.csv").write_text("\n".join(lines))
    words = ["run", "people.csv", "--label", "hired", "--sensitive", "sex", "--client", "site"]
    assert complaint in refused(capsys, *words)
    assert not Path("runs").exists() or not list(Path("runs").iterdir())


def test_ctrl_c_ends_with_one_line_that_says_how_to_go_on(said):
    with subprocess.Popen(
        [*ENTRY, "run", "quickstart", "--method", "fedavg", *TOY, "--set", "rounds=100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever starts the tests in the background may have them ignore Ctrl-C, which is inherited.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        # The first round is told only after it is safe; once the second is safe, it has been.
        while len(the_runs := list(Path().glob("runs/*/checkpoints/round-*"))) < 2:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    last = err.splitlines()[-1]
    assert re.fullmatch(r"equfl: Stopped after round \d+ of 100000 of fedavg. To go on: equfl resume \S+", last)
    assert last.endswith(str(the_runs[0].parents[1]))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_bars_with_the_round_the_accuracy_and_the_target_bias(monkeypatch, here):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream, config = Terminal(), load_preset("quickstart", data="toy", rounds=4, target="demographic_parity")
    monkeypatch.setattr(sys, "stderr", stream)
    with progress(here) as watcher:
        watcher.loaded(config.data.load())
        for number in range(1, 4):
            evaluation = {"accuracy": 0.7 + number / 100, "demographic_parity/pooled": number / 10}
            watcher.round(config, RoundRecord(number, 5, evaluation if number != 2 else {}))
        watcher.working("synthesising", 3, 10)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert re.search(r"equfl +\S+ +3/4 +accuracy 73\.00 %  DP 0\.3000", text)
    assert re.search(r"synthesising +\S+ +3/10", text)
    assert "Stopped after round 3 of 4 of equfl. To go on: equfl resume " in watcher.stopped()
