"""Which rows belong to which party, and which of them train and test; pure."""

import pyarrow as pa
import pyarrow.compute as pc
import torch
from jaxtyping import Int
from torch import Tensor

from equfl.core.random import Seed

Rows = Int[Tensor, " _"]
"""Row numbers within one party, ascending; the rows to train on are not as many as those to test on."""


def by_party(table: pa.Table, column: str) -> dict[str, pa.Table]:
    """The rows of each party, in the order they came; parties by name (by number, if they are numbers)."""
    names = table[column]
    if pa.types.is_dictionary(names.type):
        names = names.cast(names.type.value_type)
    order = pc.sort_indices(names)
    table, names = table.take(order), names.take(order)
    runs = pc.run_end_encode(names.combine_chunks())
    ends = [0, *runs.run_ends.to_pylist()]
    return {
        str(party): table.slice(start, end - start)
        for party, start, end in zip(runs.values.to_pylist(), ends, ends[1:], strict=False)
    }


def split_by_count(party: str, rows: int, *, train: int = 1000, test: int = 2000, seed: int = 0) -> tuple[Rows, Rows]:
    """The split of the paper's data protocol: so many rows to train on, so many to test on, the rest kept out."""
    return _cut(party, rows, *sizes_by_count(rows, train=train, test=test), seed)


def sizes_by_count(rows: int, *, train: int, test: int) -> tuple[int, int]:
    """How many of the rows train and how many test, by the paper's data protocol.

    At least as many rows are kept out as are tested on. A party too small for that (with 1000 and 2000: fewer than 5000
    rows) is divided in the same proportions, 20 % to 40 % to the rest.
    """
    whole = train + 2 * test
    return (train, test) if rows >= whole else (rows * train // whole, rows * test // whole)


def split_by_share(party: str, rows: int, *, test_share: float = 0.3, seed: int = 0) -> tuple[Rows, Rows]:
    """All rows but the test share train; each side gets at least one row where there are two."""
    test = min(max(1, round(rows * test_share)), rows - 1)
    return _cut(party, rows, rows - test, test, seed)


def _cut(party: str, rows: int, train: int, test: int, seed: int) -> tuple[Rows, Rows]:
    # Named by the party and not by its place, so that leaving others out does not change its rows.
    order = torch.randperm(rows, generator=Seed(seed).generator(f"split {party}"))
    return order[:train].sort().values, order[train : train + test].sort().values
