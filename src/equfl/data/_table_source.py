"""A user's table from where it lies: a file, told by its suffix, or any object that speaks Arrow."""

import codecs
import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from equfl.core.errors import DataError, DataMissing
from equfl.data._column_types import MISSING_WORDS

DELIMITERS = ",;\t|"
ROW_LABELS = re.compile(r"__index_level_\d+__")
"""How pandas calls an index without a name when it becomes a column."""


@dataclass(frozen=True)
class Source:
    """A table as it came, and where from."""

    name: str
    table: pa.Table
    read_as: str = ""
    """How the file was understood, where that was a guess."""


def read_source(data: object) -> Source:
    """The table in a file or behind an object."""
    if isinstance(data, str | Path):
        return read_file(Path(data).expanduser())
    if not hasattr(data, "__arrow_c_stream__"):
        lazy = hasattr(data, "collect")
        raise DataError(
            f"a {type(data).__module__.partition('.')[0]} {type(data).__name__}",
            wanted="a path, or a table that speaks Arrow (pandas, polars, duckdb, pyarrow)",
            remedy="Call its collect() first" if lazy else "Make a data frame of it",
        )
    try:
        table = pa.table(data)
    except (pa.ArrowException, TypeError) as error:
        raise DataError(
            f"the table cannot be read ({_one_line(error)})",
            wanted="one type of value in every column",
            remedy="Convert the column, or drop it from the table",
        ) from None
    return Source("table", _tidied(table, "the table"))


def read_file(path: Path) -> Source:
    """The table in a file."""
    check_file(path)
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".bz2", ".zst", ".lz4")]
    reader = READERS.get(suffixes[-1] if suffixes else "")
    if reader is None:
        raise DataError(
            f"{path} has the suffix {path.suffix!r}",
            wanted=f"one of {', '.join(READERS)}",
            remedy="Save it as CSV or Parquet",
        )
    try:
        table, read_as = reader(path)
    except OSError as error:
        raise _unreadable(path, error.strerror or _one_line(error)) from None
    except (pa.ArrowException, UnicodeError) as error:
        raise _unreadable(path, _one_line(error)) from None
    return Source(path.name, _tidied(table, str(path)), read_as)


def check_file(path: Path) -> None:
    """That there is a file, with the nearest name in its folder if there is none."""
    if path.is_file():
        return
    if path.is_dir():
        raise DataError(f"{path} is a folder", wanted="one file with a table", remedy="Name the file")
    there = [other.name for other in path.parent.iterdir() if other.is_file()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, there, n=1)
    raise DataMissing(
        f"there is no file {path}",
        wanted="a table as CSV, Parquet or Feather",
        remedy=f"Did you mean {near[0]!r}" if near else "Check the path; it counts from the folder you are in",
    )


def _tidied(table: pa.Table, where: str) -> pa.Table:
    names = [name.strip() for name in table.column_names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(
            f"{where} has more than one column {twice[0]!r}",
            wanted="a name of its own for every column",
            remedy="Rename or drop the others",
        )
    if not table.num_rows:
        raise DataError(f"{where} has no rows", wanted="a table with rows", remedy="Check how it was written")
    table = table.rename_columns(names)
    return table.select([name for name in names if not ROW_LABELS.fullmatch(name)])


def _read_csv(path: Path) -> tuple[pa.Table, str]:
    from pyarrow import csv

    with pa.input_stream(str(path)) as stream:
        text, encoding = _as_utf8(stream.read(), path)
    header = next((line for line in text[: 1 << 20].splitlines() if line.strip()), b"").decode(errors="replace")
    if not header:
        raise DataError(f"{path} is empty", wanted="a header line and rows", remedy="Check how it was written")
    outside_quotes = re.sub(r'"[^"]*"', "", header)
    delimiter = max(DELIMITERS, key=outside_quotes.count)

    def parse(decimal_point: str) -> pa.Table:
        return csv.read_csv(
            pa.BufferReader(text),
            # In one block, so that types are inferred from all rows and no cell is too large.
            read_options=csv.ReadOptions(block_size=min(len(text) + 1, 2**31 - 1)),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                strings_can_be_null=True,
                null_values=[before + word for word in MISSING_WORDS for before in ("", " ")],
                decimal_point=decimal_point,
            ),
        )

    table = parse(".")
    decimal_comma = delimiter != "," and any(map(_looks_like_decimal_comma, table.columns))
    if decimal_comma:
        table = parse(",")
    guesses = [
        "" if delimiter == "," else f"columns divided by {'a tab' if delimiter == chr(9) else repr(delimiter)}",
        "" if encoding == "UTF-8" else f"text in {encoding}",
        "decimal commas" if decimal_comma else "",
    ]
    return table, ", ".join(filter(None, guesses))


def _as_utf8(raw: bytes, path: Path) -> tuple[bytes, str]:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16").encode(), "UTF-16"
    if b"\0" in raw:
        raise DataError(f"{path} is not a text", wanted="a table as text", remedy="Rename it to what it is")
    raw = raw.removeprefix(codecs.BOM_UTF8)
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace").encode(), "Windows-1252 (it is not UTF-8)"
    return raw, "UTF-8"


def _looks_like_decimal_comma(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_string(column.type):
        return False
    fits = pc.match_substring_regex(column, r"^\s*[+-]?\d+(,\d+)?\s*$")
    return bool(pc.all(fits).as_py()) and column.null_count < len(column)


def _read_parquet(path: Path) -> tuple[pa.Table, str]:
    from pyarrow import parquet

    return parquet.ParquetFile(path).read(), ""


def _read_feather(path: Path) -> tuple[pa.Table, str]:
    from pyarrow import feather

    return feather.read_table(path), ""


def _read_stream(path: Path) -> tuple[pa.Table, str]:
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_stream(file).read_all(), ""


READERS: dict[str, Callable[[Path], tuple[pa.Table, str]]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".txt": _read_csv,
    ".parquet": _read_parquet,
    ".feather": _read_feather,
    ".arrow": _read_feather,
    ".ipc": _read_feather,
    ".arrows": _read_stream,
}
"""By suffix; a text may also be compressed (``people.csv.gz``)."""


def _unreadable(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path} cannot be read ({reason})",
        wanted=f"a whole {path.suffix[1:]} file",
        remedy="Correct that place, or write the file again",
    )


def _one_line(error: Exception) -> str:
    return " ".join(" ".join(map(str, error.args)).split())[:200]
