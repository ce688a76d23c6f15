"""A user's table from where it lies: files of many makes, and objects that speak Arrow."""

import gzip
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, parquet

from equfl.core.errors import DataError, DataMissing
from equfl.data._table_source import check_file, read_source

TABLE = pa.table({"age": [30, 41, 52], "name": ["Ada", "Bo", "Çelik"], "wage": [1.5, None, 2.5]})
CSV = "age,name,wage\n30,Ada,1.5\n41,Bo,\n52,Çelik,2.5\n"


class Speaker:
    """An object of which nothing is known but that it speaks Arrow, as a relation of duckdb does."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_csv_is_read_with_the_types_that_it_shows(tmp_path):
    source = read_source(written(tmp_path / "people.csv", CSV))
    assert source.table.equals(TABLE)
    assert (source.name, source.read_as) == ("people.csv", "")


@pytest.mark.parametrize(
    ("delimiter", "told"), [(";", "columns divided by ';'"), ("\t", "columns divided by a tab"), ("|", "by '|'")]
)
def test_the_delimiter_is_told_from_the_header(tmp_path, delimiter, told):
    source = read_source(written(tmp_path / "people.csv", CSV.replace(",", delimiter)))
    assert source.table.equals(TABLE)
    assert told in source.read_as


def test_a_delimiter_in_quotes_divides_nothing(tmp_path):
    table = read_source(written(tmp_path / "people.csv", '"a,b,c,d";e\n1;2\n')).table
    assert table.column_names == ["a,b,c,d", "e"]


def test_decimal_commas_are_understood_where_commas_do_not_divide(tmp_path):
    source = read_source(written(tmp_path / "people.csv", "age;wage\n30;1,5\n41;-2\n"))
    assert source.table["wage"].to_pylist() == [1.5, -2.0]
    assert "decimal commas" in source.read_as


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_is_found_out(tmp_path, encoding):
    source = read_source(written(tmp_path / "people.csv", CSV.encode(encoding)))
    assert source.table.equals(TABLE)
    assert bool(source.read_as) is (encoding in ("utf-16", "cp1252"))


def test_a_compressed_text_is_read(tmp_path):
    assert read_source(written(tmp_path / "people.csv.gz", gzip.compress(CSV.encode()))).table.equals(TABLE)


def test_cells_may_hold_line_breaks_and_quotes(tmp_path):
    table = read_source(written(tmp_path / "people.csv", 'name,age\n"two\nlines, ""quoted""",3\n')).table
    assert table["name"].to_pylist() == ['two\nlines, "quoted"']


@pytest.mark.parametrize("word", ["", "?", "NA", "N/A", "NaN", "null", " ?"])
def test_a_word_for_missing_is_missing(tmp_path, word):
    table = read_source(written(tmp_path / "people.csv", f"age,name\n{word},{word}\n3,Bo\n")).table
    assert table["age"].to_pylist() == [None, 3]
    assert table["name"].to_pylist() == [None, "Bo"]


def test_a_number_that_comes_late_does_not_change_what_a_column_is(tmp_path):
    rows = "\n".join(["1"] * 200_000 + ["2.5"])
    assert read_source(written(tmp_path / "people.csv", f"wage\n{rows}\n")).table["wage"][-1].as_py() == 2.5


def test_parquet_feather_and_arrow_files_are_read(tmp_path):
    parquet.write_table(TABLE, tmp_path / "people.parquet")
    feather.write_feather(TABLE, tmp_path / "people.feather")
    with pa.OSFile(str(tmp_path / "people.arrow"), "wb") as file, pa.ipc.new_file(file, TABLE.schema) as writer:
        writer.write_table(TABLE)
    with pa.OSFile(str(tmp_path / "people.arrows"), "wb") as file, pa.ipc.new_stream(file, TABLE.schema) as writer:
        writer.write_table(TABLE)
    for name in ("people.parquet", "people.feather", "people.arrow", "people.arrows"):
        assert read_source(tmp_path / name).table.equals(TABLE)


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_pandas(),
        pl.from_arrow(TABLE),
        Speaker(),
    ],
    ids=["pyarrow", "pandas", "polars", "anything"],
)
def test_whatever_speaks_arrow_is_a_table(data):
    source = read_source(data)
    assert source.name == "table"
    assert source.table.column_names == ["age", "name", "wage"]
    assert source.table["name"].cast(pa.string()).to_pylist() == ["Ada", "Bo", "Çelik"]
    assert source.table["age"].to_pylist() == [30, 41, 52]


def test_the_index_that_pandas_made_is_no_column_but_a_named_one_is():
    frame = TABLE.to_pandas()
    assert read_source(frame[frame.age > 40]).table.column_names == ["age", "name", "wage"]
    assert set(read_source(frame.set_index("name")).table.column_names) == {"age", "name", "wage"}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"age": [1]}, "a builtins dict; wanted a path, or a table that speaks Arrow"),
        (pl.from_arrow(TABLE).lazy(), "Call its collect"),
        (3, "a builtins int"),
        (pd.DataFrame({"a": [1, "x"]}), "the table cannot be read .*Convert the column"),
    ],
    ids=["dict", "lazy", "number", "mixed"],
)
def test_what_is_no_table_is_refused_with_what_to_do(data, told):
    with pytest.raises(DataError, match=told) as caught:
        read_source(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("people.csv", b"", "is empty; wanted a header line and rows"),
        ("people.csv", b"\n\n", "is empty"),
        ("people.csv", b"age,name\n", "has no rows"),
        ("people.csv", b"age,name\n1\n", "cannot be read .*Expected 2 columns, got 1"),
        ("people.csv", b"age, age\n1,2\n", "more than one column 'age'"),
        ("people.csv", b"PK\x03\x04\0\0\0", "is not a text"),
        ("people.csv.gz", b"age\n1\n", "cannot be read"),
        ("people.parquet", b"age,name\n1,2\n", "cannot be read .*wanted a whole parquet file"),
        ("people.parquet", b"", "cannot be read"),
        ("people.feather", b"age,name\n1,2\n", "cannot be read"),
        ("people.arrows", b"age,name\n1,2\n", "cannot be read"),
        ("people.xlsx", b"", "has the suffix '.xlsx'; wanted one of .csv"),
        ("people", b"", "has the suffix ''"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason_on_one_line(tmp_path, name, content, told):
    with pytest.raises(DataError, match=rf"{name}.* {told}") as caught:
        read_source(str(written(tmp_path / name, content)))
    assert "\n" not in str(caught.value)


def test_half_a_parquet_file_is_not_read(tmp_path):
    parquet.write_table(TABLE, tmp_path / "people.parquet")
    whole = (tmp_path / "people.parquet").read_bytes()
    written(tmp_path / "people.parquet", whole[: len(whole) // 2])
    with pytest.raises(DataError, match="wanted a whole parquet file"):
        read_source(tmp_path / "people.parquet")


def test_a_missing_file_names_the_nearest(tmp_path):
    written(tmp_path / "people.csv", CSV)
    with pytest.raises(DataMissing, match=r"there is no file .*peple\.csv.*Did you mean 'people.csv'"):
        check_file(tmp_path / "peple.csv")
    with pytest.raises(DataMissing, match="Check the path; it counts from the folder you are in"):
        check_file(tmp_path / "nowhere" / "people.csv")
    with pytest.raises(DataError, match="is a folder"):
        check_file(tmp_path)


def test_blanks_around_names_of_columns_are_no_part_of_them(tmp_path):
    assert read_source(written(tmp_path / "people.csv", "age , name\n1,Bo\n")).table.column_names == ["age", "name"]


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)


@given(rows=st.lists(st.tuples(TEXTS, st.integers(-(2**62), 2**62)), min_size=1, max_size=20))
def test_what_pandas_writes_as_csv_is_read_as_it_was(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    frame = pd.DataFrame(rows, columns=["text", "number"])
    frame["text"] = "x" + frame["text"].str.strip()  # so that it is neither a number nor a word for missing
    frame.to_csv(path, index=False)
    table = read_source(path).table
    assert table["text"].to_pylist() == frame["text"].to_list()
    assert table["number"].to_pylist() == frame["number"].to_list()
