"""What a comparison has come to, as files: ``summary.json`` by method, ``runs.csv`` by run."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from equfl.config.variants import BASELINE, Refused
from equfl.data.replacing import replacing
from equfl.runs.access import writing
from equfl.runs.environment import write_json
from equfl.runs.grid import Failed
from equfl.runs.result import number
from equfl.runs.standings import Spread, Standing, on_the_frontier

RUNS = ("target", "method", "seed", "config", "accuracy")


def write_summary(
    out: Path, tables: Mapping[str, Sequence[Standing]], refused: Sequence[Refused], failed: Sequence[Failed]
) -> None:
    """Both files, whole or not at all."""
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        write_json(
            out / "summary.json",
            {
                "targets": {target: _table(rows, target) for target, rows in tables.items()},
                "refused": [{"method": one.method, "target": one.target, "reason": one.reason} for one in refused],
                "failed": [{"folder": one.folder.name, "reason": one.reason} for one in failed],
            },
        )
        with replacing(out / "runs.csv") as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(_runs(tables))


def _table(rows: Sequence[Standing], target: str) -> dict[str, Any]:
    baseline = next((row for row in rows if row.name == BASELINE), None)
    return {
        "methods": {row.label: _standing(row, rows, target, baseline) for row in rows},
        "frontier": [row.label for row in on_the_frontier(rows, target)],
    }


def _standing(row: Standing, rows: Sequence[Standing], target: str, baseline: Standing | None) -> dict[str, Any]:
    notions = _notions(row)
    other = baseline if baseline is not row else None
    return {
        "seeds": list(row.results),
        "accuracy": _spread(row.accuracy),
        "bias": {
            name: {scope: _spread(row.bias(name, scope)) for scope in ("pooled", "client_mean")} for name in notions
        },
        "change": other
        and {
            "accuracy": _spread(row.accuracy_change(other)),
            **{name: _spread(row.bias_change(other, name)) for name in notions},
        },
        "privacy": row.privacy,
        "uses_group_at_prediction": row.method.uses_group_at_prediction,
        "also_leaves": [asdict(one) for one in row.also_leaves],
        "dominated_by": [rival.label for rival in rows if rival.dominates(row, target)],
    }


def _spread(values: Spread) -> dict[str, Any]:
    return {
        "mean": number(values.mean),
        "deviation": number(values.deviation),
        "standard_error": number(values.standard_error),
        "beyond_chance": values.beyond_chance,
        "values": list(values.values),
    }


def _runs(tables: Mapping[str, Sequence[Standing]]) -> list[list[Any]]:
    rows = [row for those in tables.values() for row in those]
    notions = list(dict.fromkeys(name for row in rows for name in _notions(row)))
    lines: list[list[Any]] = [[*RUNS, *notions, *(f"{name} by clients" for name in notions)]]
    for target, those in tables.items():
        for row in those:
            for seed, result in row.results.items():
                biases = [result["bias"].get(name, {}) for name in notions]
                lines.append(
                    [
                        *(target, row.label, seed, result["config"], result["accuracy"]),
                        *(one.get(scope) for scope in ("pooled", "client_mean") for one in biases),
                    ]
                )
    return lines


def _notions(row: Standing) -> list[str]:
    return list(next(iter(row.results.values()))["bias"])
