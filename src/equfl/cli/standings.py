"""The table at the end of a grid: every method beside FedAvg, who beats whom, and what could not be shown."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from equfl.cli.screen import Part, Screen
from equfl.cli.words import UNKNOWN, bias, bias_change, percent, points, privacy, spaced
from equfl.config.variants import BASELINE, Refused
from equfl.core.disclosure import Disclosure
from equfl.runs.grid import Failed
from equfl.runs.standings import Spread, Standing

BY_GROUP = "†"
"""Behind a method whose predictions need the person's group."""

Spelled = Callable[[float | None], str]


def show(screen: Screen, rows: Sequence[Standing], target: str, symbols: Mapping[str, str]) -> None:
    """The table under one target, and what it says in words."""
    notions = [target, *(name for name in symbols if name != target)]
    baseline = next((row for row in rows if row.name == BASELINE), None)
    lines: list[list[Part]] = []
    for row in rows:
        cells = [spread(row.accuracy, percent), *(spread(row.bias(name), bias) for name in notions)]
        lines.append([(row.label + (f" {BY_GROUP}" if row.method.uses_group_at_prediction else ""), "bold"), *cells])
        if baseline and row is not baseline:
            changes = [row.bias_change(baseline, name) for name in notions]
            lines.append(
                [
                    ("  against FedAvg", "dim"),
                    starred(row.accuracy_change(baseline), points),
                    *(starred(change, bias_change) for change in changes),
                ]
            )
    screen.blank()
    screen.line(title(rows, target))
    screen.blank()
    screen.table(("", "accuracy", *(symbols.get(name, name) for name in notions)), lines)
    screen.blank()
    several = any(len(row.results) > 1 for row in rows)
    note = "± is the standard deviation over the seeds. * beyond two standard errors of the seed by seed difference"
    screen.prose(note if several else "One seed: nothing can be said about chance.", indent=2, first="  ", style="dim")
    if any(row.method.uses_group_at_prediction for row in rows):
        screen.prose(f"{BY_GROUP} predicts with the person's group.", indent=2, first="  ", style="dim")
    screen.blank()
    for sentence in verdicts(rows, target):
        screen.prose(sentence, indent=2, first="  ")
    screen.blank()
    _show_disclosures(screen, rows)


def _show_disclosures(screen: Screen, rows: Sequence[Standing]) -> None:
    leaving = [(row.label, "; ".join(map(_disclosed, row.also_leaves))) for row in rows]
    screen.line(("What leaves a client beside FedAvg's", "bold"), indent=2)
    screen.pairs([(label, said) for label, said in leaving if said] or [("", "nothing")], indent=4)
    private = [(row.label, privacy(row.privacy)) for row in rows if row.privacy]
    if private:
        screen.line(("Privacy", "bold"), indent=2)
        screen.pairs(private, indent=4)


def verdicts(rows: Sequence[Standing], target: str) -> list[str]:
    """Who is dominated and by whom: less biased and more accurate at once, both beyond two standard errors."""
    if not any(len(row.results) > 1 for row in rows):
        return []
    said = []
    for row in rows:
        better = [other.label for other in rows if other.dominates(row, target)]
        if better:
            said.append(f"{row.label} is dominated by {', '.join(better)}.")
    unbeaten = [row.label for row in rows if not any(other.dominates(row, target) for other in rows)]
    meaning = "Dominated means: another one is at once less biased and more accurate, both beyond two standard errors."
    return [meaning, *(said or ["Nobody is."]), f"By nobody: {', '.join(unbeaten)}."]


def show_missing(screen: Screen, refused: Sequence[Refused], failed: Sequence[Failed]) -> None:
    """What is not in the tables, each reason once."""
    for one in refused:
        screen.prose(f"{one.method} was not run for {spaced(one.target)}: {one.reason}", indent=2, style="yellow")
    runs = Counter((one.config.method.name, one.reason) for one in failed)
    for (method, reason), count in runs.items():
        screen.prose(f"{count} {'run' if count == 1 else 'runs'} of {method} failed: {reason}", indent=2, style="red")


def spread(values: Spread, spelled: Spelled) -> str:
    """``78.56 % ± 0.05``: the unit once."""
    if not values.values:
        return UNKNOWN
    number = spelled(values.mean)
    if len(values.values) == 1:
        return number
    return f"{number} ± {spelled(values.deviation).removesuffix(' %')}"


def starred(change: Spread, spelled: Spelled) -> str:
    """A change, with a mark where it is more than chance."""
    if not change.values:
        return f"{UNKNOWN}  "
    return f"{spelled(change.mean)} {'*' if change.beyond_chance else ' '}"


def _disclosed(one: Disclosure) -> str:
    return f"{one.what} ({one.when}{'' if one.only_sum else ', seen client by client'})"


def title(rows: Sequence[Standing], target: str) -> str:
    """What was compared on what."""
    result = next(iter(rows[0].results.values()))
    data = f"{result['preset'] or result['data']}{' (simulated)' if result['simulated'] else ''}"
    seeds = sorted({seed for row in rows for seed in row.results})
    whole = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    named = f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))
    return (
        f"{data}, target {spaced(target)}, {result['rounds']} rounds, {'seeds' if len(seeds) > 1 else 'seed'} {named}"
    )
