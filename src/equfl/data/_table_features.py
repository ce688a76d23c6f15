"""How each column of a user's table is read: which are numbers, which are codes, which say nothing; pure."""

from collections.abc import Collection
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from equfl.data._column_types import as_numbers, as_text, is_text, is_whole, shown
from equfl.data.encoding import Feature

FEW_VALUES = 10
"""Whole numbers with at most so many different values, each in so many rows on average, are codes."""

OTHER = "other"
MISSING = "missing"


@dataclass
class Account:
    """What was inferred, left out and filled in, in words for the user."""

    as_categories: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    rare: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)


def read_feature(
    name: str,
    column: pa.ChunkedArray,
    *,
    categorical: Collection[str],
    numeric: Collection[str],
    most_codes: int,
    account: Account,
) -> tuple[Feature, pa.ChunkedArray] | None:
    """The feature and its values (codes as text, or numbers with nulls); nothing if the column says nothing.

    Text and booleans are codes. Whole numbers are codes if they have at most ten different values, each in at least
    ten rows on average. All other numbers are numbers, and so are moments. ``categorical`` and ``numeric`` overrule.
    """
    rows, known = len(column), column.drop_null()
    different = len(known.unique())
    reason = _says_nothing(column, different) or (
        "" if name in categorical or name in numeric else _identifies_rows(column, different, most_codes)
    )
    if reason:
        account.left_out.append(f"{name} ({reason})")
        return None
    if name in categorical or (is_text(column) and name not in numeric):
        return read_codes(name, column, most_codes=most_codes, account=account)
    if is_whole(column) and name not in numeric and different <= min(FEW_VALUES, rows // FEW_VALUES):
        account.as_categories.append(f"{name} ({different} different values)")
        return read_codes(name, column, most_codes=most_codes, account=account)
    if is_whole(column) and different == rows and name not in numeric:
        account.doubtful.append(name)
    if column.null_count:
        account.missing.append(f"{name}: {column.null_count:,} became the mean of their client")
    return Feature(name), as_numbers(name, column)


def read_codes(
    name: str, column: pa.ChunkedArray, *, most_codes: int, account: Account
) -> tuple[Feature, pa.ChunkedArray]:
    """The column as codes: at most so many, the rarest under ``other``, missing ones under ``missing``."""
    counts = {pair["values"]: pair["counts"] for pair in as_text(column).drop_null().value_counts().to_pylist()}
    codes = sorted(counts, key=None if is_text(column) or pa.types.is_temporal(column.type) else float)
    text = as_text(column)
    if len(codes) > most_codes:
        # Sorting is stable, so equally frequent codes stay in their order.
        named = sorted((code for code in codes if code != OTHER), key=lambda code: -counts[code])
        frequent, rare = set(named[: most_codes - 1]), named[most_codes - 1 :]
        account.rare.append(
            f"{name}: {len(rare):,} of {len(codes):,} values, in {sum(counts[code] for code in rare):,} rows"
        )
        codes = [code for code in codes if code in frequent] + [OTHER]
        known = pc.is_in(text, value_set=pa.array(sorted(frequent), pa.string()))
        text = pc.if_else(pc.or_(known, pc.is_null(text)), text, OTHER)
    if text.null_count:
        account.missing.append(f"{name}: {text.null_count:,} became the code {MISSING!r}")
        codes = [code for code in codes if code != MISSING] + [MISSING]
        text = pc.fill_null(text, MISSING)
    return Feature(name, tuple(codes)), text


def _says_nothing(column: pa.ChunkedArray, different: int) -> str:
    if not different:
        return "no values"
    if different == 1 and not column.null_count:
        return f"{shown(as_text(column.slice(0, 1)).to_pylist())} in every row"
    if different == 1 and not is_text(column):
        return "the same wherever it is given"
    return ""


def _identifies_rows(column: pa.ChunkedArray, different: int, most_codes: int) -> str:
    rows = len(column)
    if is_text(column):
        if different == rows:
            return "a different value in every row"
        if different > most_codes and 2 * different > rows:
            return f"{different:,} different values in {rows:,} rows"
    if is_whole(column) and different == rows:
        values = column.combine_chunks()
        extremes = pc.min_max(values)
        if extremes["max"].as_py() - extremes["min"].as_py() == rows - 1:
            return "numbers the rows"
        if pc.all(pc.greater(values.slice(1), values.slice(0, rows - 1))).as_py():
            return "numbers the rows"
    return ""
