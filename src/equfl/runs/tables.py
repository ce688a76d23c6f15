"""Records and audits in long format, one number per row: what data frames like best."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from equfl.core.protocol import RoundRecord
from equfl.data.replacing import replacing
from equfl.fairness.audit import Audit

Columns = Mapping[str, Sequence[Any]]
"""A table, column by column."""


def rounds_table(records: Iterable[RoundRecord]) -> Columns:
    """Columns ``round, set, measure, scope, value``.

    ``set`` is ``test`` for evaluations (``measure`` is ``accuracy`` or a notion, ``scope`` is ``pooled`` or
    ``client_mean``), ``server`` for what the method's step reported, ``time`` for seconds by phase.
    """
    rows = [
        (record.round, set_, *_measure_and_scope(name, set_), value)
        for record in records
        for set_, numbers in (
            ("clients", {"participants": float(record.participants), **record.clients}),
            ("test", record.evaluation),
            ("server", record.diagnostics),
            ("time", record.seconds),
        )
        for name, value in numbers.items()
    ]
    return _columns(("round", "set", "measure", "scope", "value"), rows)


def audit_table(audits: Mapping[str, Audit], clients: Sequence[str]) -> Columns:
    """Columns ``grouping, measure, scope, client, group, value, low, high, standard_error``.

    ``grouping`` says by which sensitive columns the rows were divided, ``client`` is the client's name.
    """
    rows = [
        (grouping, *({**row, "client": _name(clients, row["client"])}[column] for column in AUDIT))
        for grouping, audit in audits.items()
        for row in audit.table()
    ]
    return _columns(("grouping", *AUDIT), rows)


AUDIT = ("measure", "scope", "client", "group", "value", "low", "high", "standard_error")


def write_parquet(path: Path, columns: Columns) -> None:
    """The table as a file, whole or not at all."""
    import pyarrow as pa
    from pyarrow import parquet

    with replacing(path) as fresh:
        parquet.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), fresh)


def _measure_and_scope(name: str, set_: str) -> tuple[str, str | None]:
    if set_ != "test":
        return name, None
    measure, _, scope = name.partition("/")
    return measure, scope or "pooled"


def _name(clients: Sequence[str], number: object) -> str | None:
    return clients[number] if isinstance(number, int) else None


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Columns:
    return {name: [row[position] for row in rows] for position, name in enumerate(names)}
