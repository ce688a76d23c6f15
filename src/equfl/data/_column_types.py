"""Arrow's many column types as five: text, true or false, whole numbers, numbers and moments."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from equfl.core.errors import DataError

MISSING_WORDS = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")
"""What stands for a missing value in a column of text."""

WIDEST = 1e150
"""Beyond it a number cannot be squared, so neither standardised."""

EXACT = 2.0**53
"""Up to here every whole number is a floating-point number, so 3.0 and 3 are told to be the same."""


def simplified(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as text, booleans, int64, float64, moments or nulls; missing values are null, whatever they were.

    Numbers with a fraction of 0 are whole, since a whole number that is missing somewhere often comes as a fraction.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _trimmed(pa.chunked_array([_looked_up(chunk) for chunk in column.chunks], pa.string()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_string_view(kind):
        return _trimmed(column.cast(pa.string()))
    if pa.types.is_integer(kind):
        return _whole(column)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _finite(name, column.cast(pa.float64()))
    if pa.types.is_boolean(kind) or pa.types.is_null(kind) or pa.types.is_temporal(kind):
        return column
    raise DataError(
        f"the column {name!r} holds {kind}",
        wanted="numbers, text, true and false, or dates",
        remedy="Leave it out with ignore, or make a column of numbers or text of it",
    )


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A simplified column as text."""
    return column.cast(pa.string())


def as_numbers(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A simplified column as float64; moments are seconds, true is 1."""
    kind = column.type
    if pa.types.is_temporal(kind):
        for alike, finest in (
            (pa.types.is_time, pa.time64("us")),
            (pa.types.is_duration, pa.duration("us")),
            (lambda other: True, pa.timestamp("us")),
        ):
            if alike(kind):
                microseconds = column.cast(finest, safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
                return pc.divide(microseconds, 1e6)
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).cast(pa.float64())
    try:
        return _finite(name, column.cast(pa.float64(), safe=False)).cast(pa.float64(), safe=False)
    except pa.ArrowInvalid:
        raise DataError(
            f"the column {name!r} holds {_not_a_number(column)}",
            wanted="a number in every row, since it is listed as numeric",
            remedy="Take it off that list, or correct these rows",
        ) from None


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether the column holds text or booleans: values without an order."""
    return pa.types.is_string(column.type) or pa.types.is_boolean(column.type)


def is_whole(column: pa.ChunkedArray) -> bool:
    """Whether the column holds whole numbers."""
    return pa.types.is_int64(column.type)


def shown(values: Iterable[object], *, most: int = 5) -> str:
    """A few values for people to read, long ones cut short."""
    texts = [text if len(text) <= 30 else f"{text[:27]}..." for text in map(str, values)]
    return ", ".join(map(repr, texts[:most])) + (f" and {len(texts) - most:,} more" if len(texts) > most else "")


def _looked_up(chunk: pa.DictionaryArray) -> pa.Array:
    # The values become text before they are taken: Arrow cannot take from every type of text that polars sends.
    return chunk.dictionary.cast(pa.string()).take(chunk.indices)


def _is_string_view(kind: pa.DataType) -> bool:
    return str(kind) == "string_view"


def _trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    text = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(text, value_set=pa.array(MISSING_WORDS)), pa.scalar(None, pa.string()), text)


def _whole(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        # Unsigned and beyond int64: an identifier rather than a quantity.
        return column.cast(pa.string())


def _finite(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    column = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
    beyond = pc.sum(pc.greater_equal(pc.abs(column), WIDEST)).as_py()
    if beyond:
        raise DataError(
            f"the column {name!r} is infinite, or as good as that, in {beyond:,} rows",
            wanted=f"numbers below {WIDEST:g}",
            remedy="Correct these rows or empty them (an empty number counts as missing), or ignore the column",
        )
    whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less_equal(pc.abs(column), EXACT))
    return column.cast(pa.int64()) if pc.all(whole).as_py() and column.null_count < len(column) else column


def _not_a_number(column: pa.ChunkedArray) -> str:
    wrong = []
    for value in column.unique().drop_null().to_pylist():
        try:
            float(value)
        except ValueError:
            wrong.append(value)
    return shown(wrong)
