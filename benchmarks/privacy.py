"""The paper's tables on noise, on ``income-sex``, with epsilon beside them: ``python -m benchmarks.privacy``.

Every method under every reading of "clip, then add noise", with several seeds. Finished runs are kept in ``--out`` and
not computed again, so it can be stopped at any time; the tables then show what there is.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from equfl.cli.grid_progress import computed
from equfl.cli.words import epsilon as spelled
from equfl.config.presets import load_preset
from equfl.config.schema import RunConfig
from equfl.runs.reading import result_of

FIRST_SEED = 3001
NOTIONS = ("equalized_odds", "demographic_parity", "calibration", "consistency")
METHODS: dict[str, Mapping[str, Any]] = {
    "fedavg": {"method": "fedavg"},
    "equfl": {"method": "equfl"},
    "equfl_feedback": {"method": "equfl_feedback"},
    "equfl_feedback noisy counts": {"method": "equfl_feedback", "method.epsilon": 1.0},
}
"""By label; noisy counts cost ε = 1 by themselves, exact ones leave a run without any guarantee."""
PAPERS = (0.1, 0.2, 0.3)


@dataclass(frozen=True)
class Row:
    """One row of the tables: a training, and a method under it."""

    reading: str
    """The training and its settings, for people."""
    training: Mapping[str, Any]
    method: str
    targets: tuple[str, ...]
    """One run per target; FedAvg has none, so one run serves all notions."""

    def folder(self, target: str, seed: int) -> str:
        """Where a run of this row is kept, below ``--out``."""
        return f"{self.reading} {self.method} {target} {seed}".replace(" ", "-").replace("=", "")

    def config(self, target: str, seed: int) -> RunConfig:
        """One run of this row."""
        return load_preset(
            "income-sex",
            **METHODS[self.method],
            target=target,
            training=dict(self.training),
            seed=seed,
            baseline=False,
            evaluate_every=100,
        )


def rows(names: Sequence[str]) -> Iterator[Row]:
    """All rows of the readings asked for."""
    for name in names:
        for reading, training in READINGS[name].items():
            yield Row(reading, training, "fedavg", NOTIONS[:1])
            # The paper's table is read as noise on the update; elsewhere one method and one notion tell enough.
            if name in ("none", "update"):
                yield Row(reading, training, "equfl", NOTIONS)
                yield Row(reading, training, "equfl_feedback", NOTIONS)
            else:
                yield Row(reading, training, "equfl_feedback noisy counts", NOTIONS[:1])


def _noisy(name: str, levels: Sequence[float], **settings: Any) -> dict[str, Mapping[str, Any]]:
    told = "".join(f" {field}={value:g}" for field, value in settings.items())
    return {f"{name}{told} noise={noise:g}": {"name": name, "noise": noise, **settings} for noise in levels}


READINGS: dict[str, dict[str, Mapping[str, Any]]] = {
    "none": {"sgd": {"name": "sgd"}},
    "update": _noisy("noisy_update", PAPERS),
    "update-private": _noisy("noisy_update", (1.0, 4.0)),
    "batch": _noisy("noisy_sgd", PAPERS),
    "row": _noisy("dp_sgd", (1.0, 4.0), clip=1.0),
}


def table(wanted: Sequence[Row], seeds: Sequence[int], place: Path) -> Iterator[str]:
    """Markdown, one line per row and target."""
    yield "| training | ε | method | target | accuracy | EO | DP | CAL | CON |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in wanted:
        for target in row.targets:
            found = [result for seed in seeds if (result := result_of(place / row.folder(target, seed)))]
            if found:
                privacy = found[0]["privacy"]
                epsilon = "–" if privacy is None else _epsilon(privacy)
                aim = "–" if row.method == "fedavg" else found[0]["symbols"][target]
                numbers = [[100 * result["accuracy"] for result in found]]
                numbers += [[result["bias"][name]["pooled"] for result in found] for name in NOTIONS]
                cells = [_spread(values, digits) for values, digits in zip(numbers, (2, 4, 4, 4, 4), strict=True)]
                short = f" ({len(found)} seeds)" if len(found) < len(seeds) else ""
                yield f"| {row.reading}{short} | {epsilon} | {row.method} | {aim} | {' | '.join(cells)} |"


def _epsilon(privacy: Mapping[str, Any]) -> str:
    return "none" if privacy["epsilon"] is None else f"{spelled(privacy['epsilon'])} per {privacy['unit']}"


def _spread(values: Sequence[float], digits: int) -> str:
    return f"{mean(values):.{digits}f}" + (f" ± {stdev(values):.{digits}f}" if len(values) > 1 else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", nargs="+", choices=list(READINGS), default=list(READINGS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--targets", nargs="+", choices=NOTIONS, default=NOTIONS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/privacy"))
    options = parser.parse_args()
    wanted = [
        replace(row, targets=tuple(target for target in row.targets if target in options.targets))
        for row in rows(options.readings)
        if row.method in options.methods
    ]
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    # Seed by seed, so that a sweep cut short has something of every row.
    folders = {
        row.config(target, seed): row.folder(target, seed) for seed in seeds for row in wanted for target in row.targets
    }
    _, failed = computed(list(folders), options.out, named=folders.__getitem__, processes=options.processes)
    print("\n".join(table(wanted, seeds, options.out)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
