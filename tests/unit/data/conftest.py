"""A machine on which nothing of the user's own is found, and small files as the Census Bureau publishes them."""

import csv
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from equfl.data._census_codebook import MEANINGS, PARTIES


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch, tmp_path):
    """An empty cache, no folder with data, and no downloads: a test that wants one of them says so."""
    monkeypatch.setenv("EQUFL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EQUFL_DATA", raising=False)
    monkeypatch.setenv("EQUFL_OFFLINE", "1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def write_persons() -> Callable[..., Path]:
    """Writes a person file: made-up people, or the given rows over them."""

    def write(folder: Path, party: str, *, people: int = 60, zipped: bool = False, rows: list[dict] | None = None):
        folder.mkdir(parents=True, exist_ok=True)
        plain = folder / f"psam_p{PARTIES[party]:02d}.csv"
        with plain.open("w", newline="") as file:
            made = [person(party, number) for number in range(people)] if rows is None else []
            given = [person(party, number) | changes for number, changes in enumerate(rows or [])]
            writer = csv.DictWriter(file, fieldnames=list(person(party, 0)))
            writer.writeheader()
            writer.writerows(made + given)
        if not zipped:
            return plain
        archive = folder / f"csv_p{party.lower()}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            file.write(plain, plain.name)
            file.writestr("ACS2018_PUMS_README.pdf", "what stands beside it")
        plain.unlink()
        return archive

    return write


def person(party: str, number: int) -> dict[str, object]:
    """One line of a person file. The Census Bureau writes some numbers with leading zeros, and text we do not need."""
    chance = random.Random(f"{party} {number}")
    coded = {name: chance.choice(list(codes)) for name, codes in MEANINGS.items() if name != "ST"}
    income = chance.randrange(1000, 120_000)
    return {
        "RT": "P",
        "SERIALNO": f"2018HU{number:07d}",
        "ST": f"{PARTIES[party]:02d}",
        "PWGTP": chance.randrange(1, 200),
        "AGEP": f"{chance.randrange(17, 65):02d}",
        "OCCP": f"{chance.randrange(10, 9800):04d}",
        "POBP": f"{chance.randrange(1, 500):03d}",
        "RELP": f"{chance.randrange(0, 18):02d}",
        "WKHP": f"{chance.randrange(1, 99):02d}",
        "PINCP": income,
        "PUBCOV": chance.choice((1, 2)),
        **{name: code for name, code in coded.items() if name != "RELP"},
        "NAICSP": "6111M1",
    }


@pytest.fixture
def write_extract() -> Callable[..., Path]:
    """Writes a table laid out like the extract: rows whose label can be told from age, hours and sex."""

    def write(folder: Path, sizes: dict[str, int], **columns: list) -> Path:
        chance = random.Random("extract")
        rows = {
            "ST": [party for party, size in sizes.items() for _ in range(size)],
            **{
                name: [chance.choice(codes) for size in sizes.values() for _ in range(size)]
                for name, codes in EXTRACT_CODES.items()
            },
        }
        rows |= columns
        rows.setdefault("PINCP", [age + hours > 90 for age, hours in zip(rows["AGEP"], rows["WKHP"], strict=True)])
        types = {name: pa.int16() for name in EXTRACT_CODES} | {"ST": pa.dictionary(pa.int8(), pa.string())}
        path = folder / "acs" / "acs_income_2018.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table({name: pa.array(rows[name], types.get(name)) for name in rows}), path)
        return path

    return write


EXTRACT_CODES = {
    "AGEP": range(17, 90),
    "COW": range(1, 9),
    "SCHL": range(1, 25),
    "MAR": (1, 5),
    "OCCP": range(10, 9800),
    "POBP": range(1, 500),
    "RELP": range(18),
    "WKHP": range(1, 99),
    "SEX": (1, 2),
    "RAC1P": (1, 2, 3, 6, 8),
}
