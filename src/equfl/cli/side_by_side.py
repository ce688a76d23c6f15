"""Finished runs side by side, each with its change against its own FedAvg; nothing heavy is loaded for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equfl.cli.screen import Part, Screen
from equfl.cli.words import bias, bias_change, percent, points, privacy
from equfl.runs.reading import finished_result


def show(folders: Sequence[str]) -> int:
    """The table of the runs in these folders."""
    results = [finished_result(Path(folder).expanduser()) for folder in folders]
    symbols: dict[str, str] = {}
    for result in results:
        symbols |= result["symbols"]
    rows: list[list[Part]] = []
    private: list[tuple[str, str]] = []
    for label, result in zip(_labels(folders, results), results, strict=True):
        pooled = {name: result["bias"].get(name, {}).get("pooled") for name in symbols}
        rows.append([label, percent(result["accuracy"]), *map(bias, pooled.values())])
        # A line of its own: what is guaranteed, and to whom, is not one number.
        if result.get("privacy"):
            private.append((label, privacy(result["privacy"])))
        if change := result["change"]:
            cells = [points(change["accuracy"]["pooled"]["value"]) + _mark(change["accuracy"]["pooled"])]
            for name in symbols:
                one = change.get(name, {}).get("pooled", {"value": None, "beyond_chance": False})
                cells.append(bias_change(one["value"]) + _mark(one))
            rows.append([("  against FedAvg", "dim"), *cells])
    screen = Screen()
    screen.table(("", "accuracy", *symbols.values()), rows)
    screen.blank()
    if private:
        screen.line(("Privacy", "bold"), indent=2)
        screen.pairs(private, indent=4)
        screen.blank()
    screen.line(("Bias on all test rows together. * beyond two standard errors: more than chance", "dim"), indent=2)
    return 0


def _labels(folders: Sequence[str], results: list[dict[str, Any]]) -> list[str]:
    """What was run, in words; the folder's name where that does not tell two runs apart."""
    labels = [
        f"{result['method']}, {result['preset'] or result['data']}{' (simulated)' if result['simulated'] else ''}"
        f", {result['symbols'][result['target']]}, seed {result['seed']}"
        for result in results
    ]
    return [
        label if labels.count(label) == 1 else Path(folder).name or folder
        for label, folder in zip(labels, folders, strict=True)
    ]


def _mark(change: dict[str, Any]) -> str:
    return " *" if change["beyond_chance"] else "  "
