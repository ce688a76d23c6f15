"""A user's own table as a federation: one column says whose rows they are, one the label, some the groups."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from equfl.core.errors import ConfigError, DataError
from equfl.data._column_types import as_text, is_whole, shown, simplified
from equfl.data._table_features import Account, read_feature
from equfl.data._table_roles import is_ranged, read_label, read_sensitive
from equfl.data._table_source import Source, check_file, read_source
from equfl.data.base import Dataset, Federation, Progress
from equfl.data.cache import prepared
from equfl.data.encoding import Feature, Scaling
from equfl.data.federate import Task, federate
from equfl.data.neighbourhood import with_neighbours
from equfl.data.partition import by_party, split_by_share


@dataclass(frozen=True)
class Table(Dataset, name="table"):
    """A table of your own as CSV, Parquet or Feather: its rows are divided among the values of one column.

    Rows without a label, a sensitive value or a client are left out and counted. All that was inferred, left out or
    filled in is told among the facts of the federation.
    """

    path: str = ""
    """The file. Relative paths count from the folder you are in."""
    label: str = ""
    """The column to predict; it has two values."""
    sensitive: tuple[str, ...] = ()
    """The columns that make the groups; several mean their intersection, and each is also audited alone."""
    client: str = ""
    """The column that says which party a row belongs to. The model does not see it."""
    positive: str | int | bool = ""
    """The favourable value of the label; found without asking for 0/1, true/false, yes/no and the like."""
    ignore: tuple[str, ...] = ()
    """Columns to leave out."""
    categorical: tuple[str, ...] = ()
    """Columns to read as codes, whatever they look like."""
    numeric: tuple[str, ...] = ()
    """Columns to read as numbers, whatever they look like."""
    most_codes: int = 50
    """Codes that a column may have; its rarest values beyond that are put together as 'other'."""
    bins: int = 4
    """Ranges, equally full, that a sensitive column of many numbers is divided into."""
    cuts: tuple[float, ...] = ()
    """Where to divide such a column instead: each number begins a range, so 40 divides 'below 40' from '40 or more'."""
    mark_missing: bool = False
    """Whether the model is told which numbers were missing."""
    smallest_client: int = 10
    """Clients with fewer rows are left out, and counted."""
    test_share: float = 0.3
    """Share of each client's rows that is kept for testing."""
    scaling: Scaling = "schema"
    """'schema': codes stay 0 and 1, numbers are standardised. 'paper': every input is standardised."""
    exclude_sensitive: bool = False
    """Whether the model is kept from seeing the sensitive columns."""
    seed: int = 0
    """Of the division into rows to train and rows to test on."""

    def __post_init__(self) -> None:
        _demand(0 < self.test_share < 1, "test_share", self.test_share, "a share above 0 and below 1")
        _demand(self.bins >= 2, "bins", self.bins, "at least 2")
        _demand(self.most_codes >= 2, "most_codes", self.most_codes, "at least 2")
        _demand(self.smallest_client >= 2, "smallest_client", self.smallest_client, "at least 2, to train and to test")
        _demand(list(self.cuts) == sorted(set(self.cuts)), "cuts", self.cuts, "rising numbers")
        roles = [name for name in (self.label, self.client, *self.sensitive) if name]
        _demand(len(roles) == len(set(roles)), "label, client, sensitive", roles, "columns that all differ")
        for name in self.ignore:
            _demand(name not in roles, "ignore", name, "a column that is neither label, client nor sensitive")
        for name in self.categorical:
            _demand(name not in self.numeric, "categorical", name, "a column that is not listed as numeric too")

    def load(self, *, progress: Progress = lambda task, done, total: None) -> Federation:
        _demand(bool(self.path), "path", self.path, "the file with the table")
        path = Path(self.path).expanduser()
        check_file(path)
        return prepared(self, [path], lambda: self.read(path, progress=progress))

    def whereabouts(self) -> str:
        return self.path

    def read(self, data: object, *, progress: Progress = lambda task, done, total: None) -> Federation:
        """The federation in a table that lies elsewhere: at another path, or in memory. Nothing is cached."""
        progress("read the table", 0, 1)
        source = read_source(data)
        progress("read the table", 1, 1)
        return with_neighbours(_federation(self, source, progress), progress=progress)


def federate_table(
    data: object,
    *,
    label: str,
    sensitive: str | Sequence[str],
    client: str,
    positive: str | int | bool = "",
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    most_codes: int = 50,
    bins: int = 4,
    cuts: Sequence[float] = (),
    mark_missing: bool = False,
    smallest_client: int = 10,
    test_share: float = 0.3,
    scaling: Scaling = "schema",
    exclude_sensitive: bool = False,
    seed: int = 0,
    progress: Progress = lambda task, done, total: None,
) -> Federation:
    """A federation out of any table that speaks Arrow (pandas, polars, duckdb, pyarrow), or out of a file.

    The settings are those of ``Table``.
    """
    return Table(
        label=label,
        sensitive=(sensitive,) if isinstance(sensitive, str) else tuple(sensitive),
        client=client,
        positive=positive,
        ignore=tuple(ignore),
        categorical=tuple(categorical),
        numeric=tuple(numeric),
        most_codes=most_codes,
        bins=bins,
        cuts=tuple(map(float, cuts)),
        mark_missing=mark_missing,
        smallest_client=smallest_client,
        test_share=test_share,
        scaling=scaling,
        exclude_sensitive=exclude_sensitive,
        seed=seed,
    ).read(data, progress=progress)


def _federation(settings: Table, source: Source, progress: Progress) -> Federation:
    _check_columns(settings, source)
    wanted = [name for name in source.table.column_names if name not in settings.ignore]
    table = pa.table({name: simplified(name, source.table[name]) for name in wanted})
    table, dropped = _with_roles(settings, table)
    table, small = _without_small_clients(settings, table)

    account = Account()
    labels, classes = read_label(settings.label, table[settings.label], positive=_text(settings.positive))
    columns = {settings.label: labels, settings.client: table[settings.client]}
    features: list[Feature] = []
    groups = _sensitive(settings, table)
    for name in table.column_names:
        if name in (settings.label, settings.client):
            continue
        if name in groups:
            feature, values = groups[name]
            features.append(feature)
            columns[feature.name] = values
            if feature.name == name or settings.exclude_sensitive:
                continue
        read = read_feature(
            name,
            table[name],
            categorical=settings.categorical,
            numeric=settings.numeric,
            most_codes=settings.most_codes,
            account=account,
        )
        if read:
            features.append(read[0])
            columns[name] = read[1]
            if settings.mark_missing and read[1].null_count:
                mark = Feature(f"{name} (missing)", ("no", "yes"))
                features.append(mark)
                columns[mark.name] = pc.if_else(pc.is_null(read[1]), "yes", "no")
    task = Task(
        features=tuple(features),
        sensitive=tuple(groups[name][0].name for name in settings.sensitive),
        label=settings.label,
        classes=classes,
        exclude_sensitive=settings.exclude_sensitive,
    )
    if not task.inputs:
        raise DataError(
            f"{source.name} has no column left to predict {settings.label!r} from",
            wanted="at least one column that differs between rows",
            remedy="Take columns off the ignored ones, or add some",
        )
    parties = by_party(pa.table(columns), settings.client)
    facts = _facts(settings, source, task, columns, parties, account, dropped, small)
    return federate(
        {name: _filled(party, task.inputs) for name, party in parties.items()},
        task,
        name=Path(source.name).stem,
        split=lambda party, rows: split_by_share(party, rows, test_share=settings.test_share, seed=settings.seed),
        scaling=settings.scaling,
        facts=facts,
        progress=progress,
    )


def _check_columns(settings: Table, source: Source) -> None:
    there = source.table.column_names
    for role in ("label", "client", "sensitive"):
        if not getattr(settings, role):
            raise ConfigError(
                f"no {role} column is named",
                wanted=f"one of {shown(there, most=20)}",
                remedy=f"Pass --{role} COLUMN, or {role}= in Python",
            )
    wanted = (settings.label, settings.client, *settings.sensitive)
    for name in (*wanted, *settings.ignore, *settings.categorical, *settings.numeric):
        if name in there:
            continue
        if len(there) == 1 or any(map(_is_number, there)):
            raise DataError(
                f"{source.name} has no column {name!r}; its first line reads {shown(there)}",
                wanted="a first line with the names of the columns, divided by comma, semicolon, tab or |",
                remedy="Write one above the rows",
            )
        spelled = {column.casefold(): column for column in there}
        near = difflib.get_close_matches(name.casefold(), spelled, n=1, cutoff=0.5)
        raise DataError(
            f"{source.name} has no column {name!r}",
            wanted=f"one of {shown(there, most=20)}",
            remedy=f"Did you mean {spelled[near[0]]!r}" if near else "Check the spelling",
        )


def _with_roles(settings: Table, table: pa.Table) -> tuple[pa.Table, list[str]]:
    """The rows that have a label, a client and every sensitive value, and how many lack which."""
    kept, dropped = None, []
    for name in (settings.label, settings.client, *settings.sensitive):
        given = pc.is_valid(table[name])
        if table[name].null_count:
            dropped.append(f"{table[name].null_count:,} without {name}")
        kept = given if kept is None else pc.and_(kept, given)
    table = table.filter(kept)
    if not table.num_rows:
        raise DataError(
            f"no row is left ({', '.join(dropped)})",
            wanted="rows with a label, a client and every sensitive value",
            remedy="Check these columns",
        )
    return table, dropped


def _without_small_clients(settings: Table, table: pa.Table) -> tuple[pa.Table, str]:
    """The rows of the clients that are large enough, and what was left out."""
    column = table[settings.client]
    # Names that are no whole numbers become text, since a client is called by its name.
    column = column if is_whole(column) else as_text(column)
    table = table.set_column(table.column_names.index(settings.client), settings.client, column)
    sizes = {pair["values"]: pair["counts"] for pair in column.value_counts().to_pylist()}
    small = {name: rows for name, rows in sizes.items() if rows < settings.smallest_client}
    if len(sizes) - len(small) < 2:
        tried = f", {len(small):,} of them with fewer than {settings.smallest_client} rows" if small else ""
        raise DataError(
            f"{settings.client!r} names {len(sizes):,} client{'' if len(sizes) == 1 else 's'}{tried}",
            wanted="at least two clients",
            remedy="Lower smallest_client, or choose a column with fewer values" if small else "Choose another column",
        )
    if not small:
        return table, ""
    kept = pc.invert(pc.is_in(column, value_set=pa.array(list(small), column.type)))
    told = f"{sum(small.values()):,} of {len(small):,} clients with fewer than {settings.smallest_client} rows"
    return table.filter(kept), f"{told} ({shown(sorted(small))})"


def _sensitive(settings: Table, table: pa.Table) -> dict[str, tuple[Feature, pa.ChunkedArray]]:
    """Of each sensitive column, the codes that make the groups."""
    ranged = [name for name in settings.sensitive if is_ranged(table[name], codes=name in settings.categorical)]
    if settings.cuts and len(ranged) != 1:
        raise DataError(
            f"data.cuts = {settings.cuts} with {len(ranged)} sensitive columns of many numbers",
            wanted="exactly one such column",
            remedy="Make columns of ranges yourself" if ranged else "Leave cuts out",
        )
    return {
        name: read_sensitive(
            name,
            table[name],
            bins=settings.bins,
            cuts=settings.cuts,
            codes=name in settings.categorical,
            most_codes=settings.most_codes,
        )
        for name in settings.sensitive
    }


def _filled(party: pa.Table, features: Iterable[Feature]) -> pa.Table:
    """One client's rows, a missing number being the mean of the client's others (0 if it has none)."""
    for feature in features:
        column = party[feature.name]
        if not feature.codes and column.null_count:
            mean = pc.mean(column).as_py() or 0.0
            party = party.set_column(party.column_names.index(feature.name), feature.name, pc.fill_null(column, mean))
    return party


def _facts(
    settings: Table,
    source: Source,
    task: Task,
    columns: Mapping[str, pa.ChunkedArray],
    parties: Mapping[str, pa.Table],
    account: Account,
    dropped: Sequence[str],
    small: str,
) -> dict[str, str]:
    """What the user should know of how the table was read; only what there is to say."""
    sizes = [party.num_rows for party in parties.values()]
    negative, positive = task.classes
    rows_out = [*dropped, small] if small else list(dropped)
    left_out = [*account.left_out, *(f"{name} (as asked)" for name in settings.ignore)]
    facts = {
        "source": f"{source.name}, {source.table.num_rows:,} rows and {source.table.num_columns} columns"
        + (f"; {source.read_as}" if source.read_as else ""),
        "label": f"{settings.label}: {positive!r} is the favourable value, {negative!r} the other",
        "groups": "; ".join(f"{name}: {_sizes(columns[name])}" for name in task.sensitive),
        "clients": f"{len(parties):,} values of {settings.client}, {min(sizes):,} to {max(sizes):,} rows each",
        "numbers": ", ".join(feature.name for feature in task.inputs if not feature.codes),
        "codes": ", ".join(f"{feature.name} ({len(feature.codes)})" for feature in task.inputs if feature.codes),
        "whole numbers read as codes": ", ".join(account.as_categories),
        "rows left out": ", ".join(rows_out),
        "columns left out": ", ".join(left_out),
        "missing values": "; ".join(account.missing),
        "rare values read as 'other'": "; ".join(account.rare),
        "different in every row, perhaps to be ignored": ", ".join(account.doubtful),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _sizes(column: pa.ChunkedArray) -> str:
    pairs = sorted(column.value_counts().to_pylist(), key=lambda pair: -pair["counts"])
    return ", ".join(f"{pair['values']} ({pair['counts']:,})" for pair in pairs)


def _text(positive: str | int | bool) -> str:
    return str(positive).lower() if isinstance(positive, bool) else str(positive)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _demand(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise ConfigError(f"data.{name} = {value!r}", wanted=wanted, remedy="See 'equfl describe table'")
