"""``equfl data``: what a federation holds, told before anything is trained on it."""

import re
from pathlib import Path

import pytest

from equfl.cli import main
from equfl.config.presets import presets


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """A machine on which nothing is prepared and nothing of the census lies."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EQUFL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EQUFL_OFFLINE", "1")
    monkeypatch.delenv("EQUFL_DATA", raising=False)
    return tmp_path


@pytest.fixture
def said(capsys):
    def run(*words: str) -> str:
        assert main(["data", *words]) == 0
        return capsys.readouterr().out

    return run


PEOPLE = ["people.csv", "--label", "hired", "--sensitive", "sex", "--client", "site"]


@pytest.fixture
def people(here) -> None:
    rows = ["skill,note,sex,age,site,hired"]
    for n in range(120):
        skill = "" if n == 7 else n % 7
        rows.append(f"{skill},none,{'fm'[n % 2]},{20 + n % 40},{'abc'[n % 3]},{int(n % 7 > n % 3)}")
    (here / "people.csv").write_text("\n".join(rows))


def figures(line: str) -> list[str]:
    return re.findall(r"[\d,.]+", line)


def row(text: str, name: str) -> list[str]:
    (line,) = re.findall(rf"^  {re.escape(name)}  .*$", text, re.MULTILINE)
    return figures(line.removeprefix(f"  {name}"))


def test_alone_it_tells_where_the_rows_of_every_preset_come_from(said, here):
    text = said()
    for name in presets():
        assert re.search(rf"^  {name} +\S", text, re.MULTILINE)
    assert re.search(r"^  quickstart +comes with equfl", text, re.MULTILINE)
    assert re.search(r"^  health-sex +51 of 51 person files are not here and may not be downloaded", text, re.MULTILINE)
    assert str(here / "cache") in text.replace("\n", "")


def test_files_that_are_there_are_told(said, here, monkeypatch):
    folder = here / "own" / "2018" / "1-Year"
    folder.mkdir(parents=True)
    (folder / "psam_p50.csv").write_text("")
    (here / "own" / "acs").mkdir()
    (here / "own" / "acs" / "acs_income_2018.parquet").write_text("")
    monkeypatch.setenv("EQUFL_DATA", "own")
    monkeypatch.delenv("EQUFL_OFFLINE")
    text = " ".join(said().split())
    assert "health-sex 1 person files in own/2018/1-Year; 50 of 51 person files are not here and are downloaded" in text
    assert "income-sex own/acs/acs_income_2018.parquet" in text


def test_clients_rows_columns_groups_and_rates_are_told(said):
    text = said("quickstart", "--set", "data=toy", "--set", "data.clients=3", "--set", "data.rows=40")
    assert text.startswith("toy (simulated)\n")
    assert re.search(r"^7 inputs from 4 columns$", text, re.MULTILINE)
    assert re.search(r"^  trade +3 codes: farm, shop, office$", text, re.MULTILINE)
    assert re.search(r"^  sex +2 codes: woman, man \(sensitive\)$", text, re.MULTILINE)
    woman, man, everyone = row(text, "woman"), row(text, "man"), row(text, "all")
    assert everyone[0] == "240"
    assert [int(a) + int(b) for a, b in zip(woman[:1] + woman[2::2], man[:1] + man[2::2], strict=True)] == [
        int(number) for number in (everyone[0], everyone[1], everyone[3])
    ]
    assert float(man[5]) > float(woman[5]), "the planted bias"
    assert row(text, "rows to train on") == ["40", "40", "40"]
    assert "Next:   equfl run quickstart --set data=toy --set data.clients=3 --set data.rows=40" in text


def test_what_was_made_of_a_table_is_told(said, people):
    text = " ".join(said(*PEOPLE, "--set", "data.exclude_sensitive=true").split())
    for told in (
        "source people.csv, 120 rows and 6 columns",
        "label hired: '1' is the favourable value",
        "groups sex: f (60), m (60)",
        "columns left out note ('none' in every row)",
        "missing values skill: 1 became the code 'missing'",
        "names of clients a, b, c",
        "; the model does not see sex",
        "rows to train on 28 28 28",
        f"equfl run {' '.join(PEOPLE)}",
    ):
        assert told in text


def test_several_sensitive_columns_are_shown_together_and_each_alone(said, people):
    text = said(*PEOPLE, "--sensitive", "age", "--set", "data.bins=2")
    assert re.search(r"^  sex x age \(ranges\) +rows", text, re.MULTILINE)
    assert re.search(r"^  m, 40 or more +\d+ ", text, re.MULTILINE)
    assert re.search(r"^  sex +rows", text, re.MULTILINE)
    assert re.search(r"^  age \(ranges\) +rows", text, re.MULTILINE)
    assert [number[0] for number in re.findall(r"^  all test rows +(\d+)", text, re.MULTILINE)] == ["3", "3"]


def test_it_prepares_what_the_next_command_then_finds(said):
    words = ["quickstart", "--set", 'data.parties=["WY", "VT"]']
    first = said(*words)
    (kept,) = Path("cache/prepared").iterdir()
    written = kept.stat().st_mtime_ns
    again = said(*words)
    assert "\nPrepared in " in first
    assert "\nLoaded in " in again
    assert "(1 prepared federation, " in again
    assert kept.stat().st_mtime_ns == written
    assert again.partition("\nLoaded")[0] == first.partition("\nPrepared")[0]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["quickstrt"], "no preset is called 'quickstrt'"),
        (["missing.csv"], "there is no file"),
        (["people.csv"], "no label column is named"),
        (["income-sex"], "psam_p01.csv, the census' person file of AL, is neither in the folder"),
        (["quickstart", "--set", "data.rows=3"], "data.rows: unknown key"),
        (["quickstart", "--method", "fedavg"], "unknown option '--method'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_shown_is_one_line_and_exit_code_2(capsys, people, words, complaint):
    assert main(["data", *words]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert complaint in streams.err.splitlines()[-1]
