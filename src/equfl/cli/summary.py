"""What is shown at the end of a run: the table, where the time went, where the files are, what to type next."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equfl.cli.screen import Part, Screen
from equfl.cli.words import bias, bias_change, percent, points, privacy, ratio, spaced

Result = Mapping[str, Any]
"""What ``result.json`` holds."""

CLEAR = " *"
"""Behind a change that is more than chance."""

RATES = {
    "base_rate": "base rate",
    "positive_rate": "predicted",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
    "precision": "precision",
    "accuracy": "accuracy",
}
"""What is told of a group, and its title."""

ROWS = {"pooled": "", "client_mean": "mean over clients"}


def show(screen: Screen, result: Result, folder: Path, *, lasted: float, again: str) -> None:
    """The whole block."""
    screen.blank()
    _title(screen, result)
    screen.blank()
    if result["change"]:
        _compared(screen, result)
    else:
        _alone(screen, result)
    for column in result["alone"]:
        screen.blank()
        _one_column(screen, result, column)
    for name, reason in result["left_out"].items():
        screen.line((f"– {spaced(name)}: {reason}", "dim"), indent=2)
    _unusable(screen, result)
    for remark in result["remarks"]:
        screen.line(("– " + remark, "dim"), indent=2)
    screen.blank()
    if result["privacy"]:
        screen.line(f"Privacy:  {privacy(result['privacy'])}")
    for name, found in (result["transfer"] or {}).items():
        _transfer(screen, name, found)
    _seconds(screen, result, lasted)
    screen.line("Files:    ", str(folder))
    for lead, command in _next(result, folder, again):
        screen.line(f"{lead:<10}", (command, "cyan"))


def _title(screen: Screen, result: Result) -> None:
    data = f"{result['data']} (simulated)" if result["simulated"] else result["data"]
    screen.line(
        (result["method"], "bold"),
        f" on {data}, target {spaced(result['target'])}, {result['rounds']} rounds, seed {result['seed']}",
    )
    if result["real_rows"]:
        screen.line(("A control: the server was given real rows of the clients, which no server has.", "yellow"))


def _compared(screen: Screen, result: Result) -> None:
    before, change = result["baseline"], result["change"]
    accuracy = change["accuracy"]["pooled"]
    rows: list[tuple[Part, ...]] = [
        (
            "accuracy",
            percent(before["accuracy"]),
            percent(result["accuracy"]),
            points(accuracy["value"]),
            _clear(accuracy, better=1),
        )
    ]
    for name, values in result["bias"].items():
        for scope, words in ROWS.items():
            one = change[name][scope]
            rows.append(
                (
                    _label(name, words, result),
                    bias(before["bias"][name][scope]),
                    bias(values[scope]),
                    bias_change(one["value"]),
                    _clear(one, better=-1),
                )
            )
    screen.table(("", "fedavg", result["method"], "change", ""), rows)
    screen.blank()
    screen.line(("* beyond two standard errors: more than chance", "dim"), indent=2)


def _alone(screen: Screen, result: Result) -> None:
    rows: list[tuple[Part, ...]] = [("accuracy", percent(result["accuracy"]))]
    for name, values in result["bias"].items():
        rows += [(_label(name, words, result), bias(values[scope])) for scope, words in ROWS.items()]
    screen.table(("", result["method"]), rows)


def _unusable(screen: Screen, result: Result) -> None:
    # Whoever is left out for a fault of its own should be looked at; whom a rule leaves out is the rule's business.
    broken, idle = (result["clients"].get(name, 0) for name in ("not_finite", "idle"))
    if broken or idle:
        rounds = f"; in {idle} rounds no update could be used" if idle else ""
        screen.line((f"– {broken} updates were not finite and left out{rounds}", "red"), indent=2)


def _one_column(screen: Screen, result: Result, column: str) -> None:
    """Where the groups are intersections of several columns: the groups of one of them alone."""
    runs = [*([result["baseline"]] if result["change"] else []), result]
    rows = [
        (spaced(name), *(bias(run["alone"][column]["bias"][name]["pooled"]) for run in runs), _interval(last))
        for name, last in result["alone"][column]["bias"].items()
    ]
    screen.table((f"{column} alone", *(run["method"] for run in runs), "95 % interval"), rows)
    screen.blank()
    groups = result["alone"][column]["groups"].items()
    lines = [(group, f"{rates['rows']:,}", *(percent(rates[name]) for name in RATES)) for group, rates in groups]
    screen.table((column, "rows", *RATES.values()), lines)


def _interval(values: Mapping[str, float | None]) -> str:
    return f"{bias(values['low'])} to {bias(values['high'])}"


def _label(name: str, words: str, result: Result) -> Part:
    if words:
        return f"  {words}"
    return (spaced(name), "bold") if name in result["target"].split("+") else spaced(name)


def _clear(change: Mapping[str, Any], *, better: int) -> Part:
    if not change["beyond_chance"]:
        return ""
    return CLEAR.strip(), "green" if change["value"] * better > 0 else "red"


def _seconds(screen: Screen, result: Result, lasted: float) -> None:
    phases = ", ".join(f"{phase} {spent:.1f}" for phase, spent in result["seconds"].items())
    alone = f"; FedAvg by itself {sum(result['baseline']['seconds'].values()):.1f}" if result["change"] else ""
    screen.line(f"Seconds:  {phases}{alone}; this command {lasted:.1f}")


def _transfer(screen: Screen, name: str, found: Mapping[str, float | None]) -> None:
    ours, theirs = (
        f"{bias(found[f'{rows}_before'])} to {bias(found[f'{rows}_after'])}" for rows in ("synthetic", "real")
    )
    cosine = found["cosine_of_losses"] if found["cosine_of_rates"] is None else found["cosine_of_rates"]
    screen.line(
        f"Transfer: {spaced(name)} {ours} on the server's rows, {theirs} on the clients'; "
        f"ratio {ratio(found['ratio'])}, cosine of the gradients {ratio(cosine)}"
    )


def _next(result: Result, folder: Path, again: str) -> list[tuple[str, str]]:
    other = "demographic_parity" if result["target"] != "demographic_parity" else "equalized_odds"
    choice = "--method equfl" if result["method"] == "fedavg" else f"--target {other}"
    return [("Next:", f"{again} {choice}"), ("", f"equfl compare {shlex.quote(str(folder))} ...")]
