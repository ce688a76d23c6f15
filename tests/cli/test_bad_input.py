"""Whatever is wrong with what a user has: one line that says what to do, exit code 2, and nothing half-written."""

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from equfl.cli import main

ENTRY = [sys.executable, "-c", "import sys; from equfl.cli import main; sys.exit(main())"]
TOY = ["run", "quickstart", "--method", "fedavg", "--set", "data=toy", "--set", "data.rows=30", "--set", "rounds=40"]
COLUMNS = ["--label", "hired", "--sensitive", "sex", "--client", "site"]
PEOPLE = {
    "skill": [n % 7 for n in range(120)],
    "sex": ["fm"[n % 2] for n in range(120)],
    "site": [f"s{n % 3}" for n in range(120)],
    "hired": [n % 5 // 3 for n in range(120)],
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EQUFL_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def refused(capsys) -> Callable[..., str]:
    """What is said of a command that ends with code 2: one line after whatever came before it."""

    def run(*words: str) -> str:
        assert main([*words]) == 2
        streams = capsys.readouterr()
        assert streams.out == ""
        return sentence(streams.err)

    return run


def sentence(said: str) -> str:
    """The complaint: found, wanted, remedy."""
    (line,) = [line for line in said.splitlines() if line.startswith("equfl: ")]
    assert said.splitlines()[-1] == line
    assert re.fullmatch(r"equfl: .+; wanted .+\. .+\.", line), line
    return line


def written(name: str, text: str | bytes) -> str:
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return name


def parquet_bytes() -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table(PEOPLE), file)
    return file.getvalue()


def csv_text(**changes: object) -> str:
    columns = {**PEOPLE, **changes}
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join([",".join(columns), *lines])


CONFIGS = {
    "an unknown key": ("c.toml", 'data = "toy"\nrouds = 3', r"rouds: unknown key; .* Did you mean 'rounds'"),
    "an unknown key below": (
        "c.yaml",
        "data: toy\nmethod: {name: equfl, gama: 1}",
        r"method\.gama: unknown key; .* Did you mean 'gamma'",
    ),
    "another type": ("c.json", '{"data": "toy", "rounds": "ten"}', r"rounds = 'ten'; wanted a whole number"),
    "another type in a list": (
        "c.toml",
        'data = "toy"\nmodel = {name = "mlp", hidden = [8, "x"]}',
        r"model\.hidden\[1\] = 'x'; wanted a whole number",
    ),
    "a number out of range": ("c.toml", 'data = "toy"\nparticipation = 1.5', r"participation = 1\.5; wanted a share"),
    "a missing key": ("c.toml", "rounds = 3", "data: missing; wanted a value"),
    "no TOML": ("c.toml", "data = = 3", r"c\.toml is not valid TOML"),
    "no YAML": ("c.yaml", "a: [", r"c\.yaml is not valid YAML"),
    "no JSON": ("c.json", "{", r"c\.json is not valid JSON"),
    "no text": ("c.toml", b"\xff\xfe\x00\x01", r"c\.toml is not valid TOML"),
    "nothing": ("c.toml", "", "data: missing"),
}


@pytest.mark.parametrize(("name", "text", "told"), CONFIGS.values(), ids=CONFIGS)
def test_a_config_that_cannot_be_used(refused, name, text, told):
    assert re.search(told, refused("run", written(name, text)))
    assert not Path("runs").exists()


TABLES = {
    "a label of one value": (
        csv_text(hired=[1] * 120),
        "the label 'hired' has one value only: '1'; wanted exactly two",
    ),
    "a label of three values": (
        csv_text(hired=[n % 3 for n in range(120)]),
        "the label 'hired' has 3 different values",
    ),
    "a label that nobody has": (csv_text(hired=[""] * 120), r"no row is left \(120 without hired\)"),
    "one sensitive value": (csv_text(sex=["f"] * 120), "sex is 'f' in every row; wanted at least two groups"),
    "one client": (csv_text(site=["s"] * 120), "'site' names 1 client; wanted at least two"),
    "clients of a row each": (
        csv_text(site=range(120)),
        "'site' names 120 clients, 120 of them with fewer than 10 rows",
    ),
    "infinite numbers": (csv_text(skill=["inf", *range(119)]), "the column 'skill' is infinite"),
    "no such column": (csv_text().replace("hired", "hire", 1), "has no column 'hired'.*Did you mean 'hire'"),
    "rows of another length": (csv_text() + "\n1,2,3,4,5,6", "cannot be read .*Expected 4 columns, got 6"),
    "a header alone": ("skill,sex,site,hired\n", "has no rows"),
    "an empty file": ("", "is empty"),
    "no text": (b"\0\1\2" * 50, "is not a text"),
}


@pytest.mark.parametrize(("text", "told"), TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("command", ["run", "data"])
def test_a_table_that_cannot_be_used(refused, command, text, told):
    assert re.search(told, refused(command, written("people.csv", text), *COLUMNS))
    assert not Path("runs").exists() or not any(Path("runs").iterdir())
    assert not Path("cache").exists() or not any(path.is_file() for path in Path("cache").rglob("*"))


FILES = {
    "a file that is not there": ("pepole.csv", "there is no file .*pepole.csv; .* Did you mean 'people.csv'"),
    "another suffix": ("people.xlsx", "has the suffix '.xlsx'; wanted one of .csv"),
    "half a file": ("half.parquet", "half.parquet cannot be read"),
    "another content": ("text.parquet", "text.parquet cannot be read"),
    "a folder": ("folder", "folder is a folder"),
}


@pytest.mark.parametrize(("name", "told"), FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_read(refused, name, told):
    written("people.csv", csv_text())
    written("people.xlsx", b"PK")
    written("half.parquet", parquet_bytes()[:-100])
    written("text.parquet", csv_text())
    Path("folder").mkdir()
    assert re.search(told, refused("run", name, *COLUMNS))
    assert not Path("runs").exists() or not any(Path("runs").iterdir())


HEADER = "ST,AGEP,SCHL,MAR,RELP,DIS,ESP,CIT,MIG,MIL,ANC,NATIVITY,DEAR,DEYE,DREM,SEX,RAC1P,ESR"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], r"psam_p50\.csv has no rows; wanted a 1-year person file of 2018"),
        (["56" + ",1" * 17], r"psam_p50\.csv holds other rows than those of VT"),
        (["50,old" + ",1" * 16], r"psam_p50\.csv cannot be read .*invalid value 'old'"),
        (["50" + ",1" * 17], r"VT has 1 rows, of which 0 train and 0 test; wanted at least one of each"),
    ],
    ids=["an empty client", "another client", "text for a number", "a client of one row"],
)
def test_a_person_file_that_cannot_be_used(refused, monkeypatch, rows, told):
    monkeypatch.setenv("EQUFL_DATA", ".")
    written("psam_p50.csv", "\n".join([HEADER, *rows, ""]))
    varied = [f"56,{n}" + f",{1 + n % 2}" * 15 + f",{1 + n % 3}" for n in range(60)]
    written("psam_p56.csv", "\n".join([HEADER, *varied]))
    words = ["--set", 'data.parties=["VT", "WY"]']
    assert re.search(told, refused("run", "employment-sex", *words))
    assert not any(path.is_file() for folder in ("runs", "cache") for path in Path(folder).rglob("*"))


def result(folder: str) -> dict[str, object]:
    found = json.loads(Path(folder, "result.json").read_text())
    return {name: value for name, value in found.items() if name not in ("seconds", "baseline")}


@pytest.fixture(scope="session")
def a_run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bad input") / "whole"
    assert main([*TOY, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def finished(a_run, here) -> None:
    """A finished run in the folder 'whole', which may be damaged."""
    shutil.copytree(a_run, here / "whole")


@pytest.mark.parametrize("length", [0, 7, 1000], ids="{} bytes".format)
def test_checkpoints_that_are_all_truncated_are_not_gone_on_with(refused, finished, length):
    Path("whole/result.json").unlink()
    for path in Path("whole/checkpoints").iterdir():
        path.write_bytes(path.read_bytes()[:length])
    told = r"whole holds no whole checkpoint \(round-00040.*; wanted at least one .* delete this one and run again"
    assert re.search(told, refused("resume", "whole"))
    assert re.search(told, refused(*TOY, "--out", "whole"))
    assert not Path("whole/result.json").exists()


@pytest.mark.filterwarnings("default")  # as for a user
def test_one_truncated_checkpoint_costs_one_round(capsys, finished):
    expected = result("whole")
    Path("whole/result.json").unlink()
    newest = Path("whole/checkpoints/round-00040.safetensors")
    newest.write_bytes(newest.read_bytes()[:-1])
    assert main(["resume", "whole"]) == 0
    assert "round-00040.safetensors is damaged; going on from round 39." in capsys.readouterr().err
    assert result("whole") == expected


@pytest.mark.parametrize("command", ["compare", "resume", "run"])
def test_half_a_result_is_not_taken_for_one(refused, finished, command):
    path = Path("whole/result.json")
    path.write_text(path.read_text()[:-20])
    words = {"compare": ["compare", "whole"], "resume": ["resume", "whole"], "run": [*TOY, "--out", "whole"]}
    assert re.search(r"whole/result\.json is damaged; wanted the file as it was written", refused(*words[command]))


def limited(bytes_: int, *words: str) -> "subprocess.CompletedProcess[str]":
    """A command none of whose files may grow beyond a size: the system then says what it says of a full disk."""
    code = f"""
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({bytes_}, resource.RLIM_INFINITY))
from equfl.cli import main
sys.exit(main({list(words)}))
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("bytes_", [100, 9_000])
def test_a_disk_that_fills_up_at_some_moment(capsys, finished, bytes_):
    done = limited(bytes_, *TOY, "--out", "full")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(r"full cannot be written \(.*\); wanted a folder with space", sentence(done.stderr))
    assert not Path("full/result.json").exists()
    assert [path for path in Path("full").rglob(".*") if path.is_file()] == []
    assert main([*TOY, "--out", "full"]) == 0, "when there is room again"
    assert result("full") == result("whole")


def test_a_disk_that_is_full_while_the_data_is_prepared_costs_nothing_but_the_cache():
    words = ["data", "quickstart", "--set", 'data.parties=["WY", "VT"]']
    done = limited(10_000, *words)
    assert done.returncode == 0
    assert "equfl: The prepared rows are not kept: [Errno 27] File too large" in done.stderr
    assert not any(path.is_file() for path in Path("cache").rglob("*"))


@pytest.mark.parametrize("command", [[*TOY, "--out", "a"], ["data"]], ids=["run", "data"])
def test_a_full_disk_behind_the_output(finished, command):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run([*ENTRY, *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("equfl: No space left on device; wanted files")


READ_ONLY = """
import os, sys
from equfl.cli import main
main([*sys.argv[1:], "--out", "warm"])
os.chmod("locked", 0o555)
os.chmod(".", 0o755)
if os.getuid() == 0:
    os.seteuid(65534)  # who may write everywhere is nobody to test this with
code = main([*sys.argv[1:], "--out", "locked/run"])
if os.getuid() == 0:
    os.seteuid(0)
os.chmod("locked", 0o755)
sys.exit(code)
"""


def test_an_output_folder_that_is_read_only(here):
    Path("locked").mkdir()
    done = subprocess.run([sys.executable, "-c", READ_ONLY, *TOY], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert re.search(r"locked/run cannot be written \(Permission denied\)", done.stderr.splitlines()[-1])
    assert list(Path("locked").iterdir()) == []
