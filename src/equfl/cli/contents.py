"""The pages of ``equfl data``."""

import shlex
from collections.abc import Sequence

import torch
from torch import Tensor

from equfl.cli.screen import Part, Screen
from equfl.cli.words import UNKNOWN
from equfl.config.presets import load_preset, presets
from equfl.core.schema import Column, Schema
from equfl.data import cache
from equfl.data.base import Dataset, Federation
from equfl.data.contents import Division, by_client, divisions

MOST = 12
"""Codes, clients and groups that are listed; of more, the first ones and how many there are."""


def overview() -> None:
    """Every preset with the place of its data, and the cache."""
    screen = Screen()
    screen.line(("preset", "bold"), "  where its rows come from on this machine")
    screen.pairs((name, load_preset(name).data.whereabouts()) for name in presets())
    screen.blank()
    screen.line(("cache", "bold"), f"  {cached()}")
    screen.blank()
    screen.line("What a federation holds:  ", ("equfl data quickstart", "cyan"))
    table = "equfl data people.csv --label hired --sensitive sex --client site"
    screen.line("A table of your own:      ", (table, "cyan"))


def show(federation: Federation, dataset: Dataset) -> None:
    """One federation: where it is from, its columns, its groups, its clients."""
    screen, schema = Screen(), federation.schema
    simulated = " (simulated)" if federation.facts.get("simulated") == "yes" else ""
    screen.line((f"{federation.name}{simulated}", "bold"))
    screen.blank()
    places = {"files": dataset.whereabouts(), "names of clients": _some(federation.clients)}
    screen.pairs([*federation.facts.items(), *places.items()])
    screen.blank()
    if schema.columns:
        _columns(screen, schema)
    for name, division in divisions(federation).items():
        _groups(screen, name, division, schema.classes)
    _clients(screen, federation)


def end(seconds: float, *, built: bool, run: Sequence[str]) -> None:
    """How long it took, where it is kept, and what to type next."""
    screen = Screen()
    screen.line(f"{'Prepared' if built else 'Loaded'} in {seconds:.1f} s")
    screen.line(f"Cache:  {cached()}")
    screen.line("Next:   ", (shlex.join(run), "cyan"))


def cached() -> str:
    """Where prepared federations are kept, how many there are, and how large they are."""
    files = [path.stat().st_size for path in (cache.folder() / "prepared").glob("*.safetensors")]
    held = f"{len(files)} prepared federation{'' if len(files) == 1 else 's'}, {sum(files) / 1e6:,.0f} MB"
    return f"{cache.folder()} ({held}; EQUFL_CACHE names another folder)"


def _columns(screen: Screen, schema: Schema) -> None:
    unseen = [name for name in schema.sensitive if name not in {column.name for column in schema.columns}]
    hidden = f"; the model does not see {' and '.join(unseen)}" if unseen else ""
    screen.line(f"{schema.shape[0]} inputs from {len(schema.columns)} columns{hidden}")
    screen.pairs((column.name, _kind(column, schema)) for column in schema.columns)
    screen.blank()


def _kind(column: Column, schema: Schema) -> str:
    kind = "number" if column.numeric else f"{len(column.codes)} codes: {_some(column.codes)}"
    return f"{kind} (sensitive)" if column.name in schema.sensitive else kind


def _groups(screen: Screen, name: str, division: Division, classes: Sequence[str]) -> None:
    """How many rows of each group have which label, and how often a row of the group has it."""
    whole = int(division.rows.sum())
    lines = [
        [group, f"{sum(rows):,}", _percent(sum(rows), whole), *_labels(rows)]
        for group, rows in zip(division.groups, division.rows.T.tolist(), strict=True)
    ]
    last = [
        "all test rows" if division.tested else "all",
        f"{whole:,}",
        "",
        *_labels(division.rows.sum(dim=1).tolist()),
    ]
    screen.table((name, "rows", "share", *classes), [*lines, [(cell, "dim") for cell in last]])
    screen.blank()


def _labels(rows: Sequence[int]) -> list[str]:
    """Rows by label, each with its share."""
    return [f"{count:,}  {_percent(count, sum(rows)):>7}" for count in rows]


def _clients(screen: Screen, federation: Federation) -> None:
    """The range of the clients: how large they are, how often their rows have which label and which group."""
    cells = by_client(federation)
    sizes = cells.sum(dim=(1, 2))
    lines = [
        _range(federation, title, torch.tensor(counts), "{:,.0f}")
        for title, counts in (("rows to train on", federation.train.sizes), ("rows to test on", federation.test.sizes))
    ]
    labels = zip(federation.schema.classes, cells.sum(dim=2).T, strict=True)
    groups = zip(federation.schema.groups, cells.sum(dim=1).T, strict=True)
    shares = [*list(labels)[1:MOST], *list(groups)[:MOST]]
    lines += [_range(federation, f"share: {title}", 100 * counts / sizes, "{:.1f} %") for title, counts in shares]
    screen.table((f"{len(sizes):,} clients", "lowest", "median", "highest"), lines)
    screen.blank()


def _range(federation: Federation, title: str, values: Tensor, spelled: str) -> list[Part]:
    lowest, highest = (_extreme(federation, values, end, spelled) for end in (values.min(), values.max()))
    return [title, lowest, spelled.format(values.median()), highest]


def _extreme(federation: Federation, values: Tensor, end: Tensor, spelled: str) -> str:
    """The value, and whose it is if that is one client's alone."""
    whose = (values == end).nonzero().flatten().tolist()
    return spelled.format(end) + (f" ({federation.clients[whose[0]]})" if len(whose) == 1 else "")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else UNKNOWN


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST:,} more" if len(names) > MOST else "")
