"""What every federation must be before anything is trained on it, whoever made it; pure."""

from itertools import pairwise

from torch import Tensor

from equfl.core.errors import DataError
from equfl.core.samples import Shards
from equfl.core.schema import Schema
from equfl.data.base import Federation


def demand_sound(federation: Federation) -> None:
    """Refuse rows that no training or audit could make sense of, and say whose they are.

    Data sets of ours have seen to that already; this is for federations made by a program or by another package.
    """
    for purpose, shards in (("train", federation.train), ("test", federation.test)):
        _demand_rows(federation, purpose, shards)
        _demand_finite(federation, purpose, shards)
    schema, both = federation.schema, (federation.train.pooled, federation.test.pooled)
    _demand_known("label", schema.classes, [samples.labels for samples in both])
    _demand_known("group", schema.groups, [samples.groups for samples in both])


def _demand_rows(federation: Federation, purpose: str, shards: Shards) -> None:
    rows, told = len(shards.pooled), sum(shards.sizes)
    if rows != told or len(shards) != len(federation.clients):
        raise DataError(
            f"{rows:,} rows to {purpose} on, and sizes of {len(shards)} clients that add up to {told:,}",
            wanted=f"all rows divided among the {len(federation.clients)} clients",
            remedy="Make shards of the clients' own rows with equfl.core.samples.concatenate",
        )
    empty = [name for name, size in zip(federation.clients, shards.sizes, strict=True) if size == 0]
    # A client that only trains has no bias of its own, and is left out where clients are averaged.
    if empty and purpose == "train":
        raise DataError(
            f"the client {empty[0]!r} has no rows to train on",
            wanted="at least one row of every client",
            remedy="Leave it out of the federation",
        )


def _demand_finite(federation: Federation, purpose: str, shards: Shards) -> None:
    inputs = shards.pooled.inputs.flatten(1)
    # The sum is finite unless something in it is not, or it is too large, which only a closer look can tell.
    if inputs.sum().isfinite() or inputs.isfinite().all():
        return
    row, column = (~inputs.isfinite()).nonzero()[0].tolist()
    owner = next(i for i, (start, stop) in enumerate(pairwise(shards.starts)) if start <= row < stop)
    raise DataError(
        f"input {column}{_called(federation.schema, column)} of a row to {purpose} on is {inputs[row, column]:g}, "
        f"at the client {federation.clients[owner]!r}",
        wanted="finite numbers",
        remedy="Correct the row, fill it in, or leave it out",
    )


def _called(schema: Schema, position: int) -> str:
    return next((f" ({column.name})" for column in schema.columns if column.start <= position < column.stop), "")


def _demand_known(kind: str, names: tuple[str, ...], parts: list[Tensor]) -> None:
    if any(values.is_floating_point() for values in parts):
        return  # memberships
    ends = [int(end) for values in parts if len(values) for end in values.aminmax()]
    lowest, highest = min(ends), max(ends)
    if lowest < 0 or highest >= len(names):
        raise DataError(
            f"the {kind} of a row is {lowest if lowest < 0 else highest}",
            wanted=f"numbers from 0 to {len(names) - 1}, as the schema names {len(names)} {kind}s",
            remedy="Count from 0, or name the others in the schema",
        )
    if lowest == highest:
        raise DataError(
            f"the {kind} is {names[lowest]!r} in every row",
            wanted=f"at least two {kind}s among the rows",
            remedy=f"Choose another {kind}, or add rows with the others",
        )
