"""What a run has come to: the values for Python, and ``result.json`` for everybody else."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from equfl.config.codec import config_hash
from equfl.config.schema import RunConfig
from equfl.core.arrays import Predictions
from equfl.core.protocol import RoundRecord, ServerState
from equfl.data.base import Federation
from equfl.fairness.audit import Audit
from equfl.fairness.comparison import Change, Comparison
from equfl.methods.base import takes_real_rows
from equfl.simulation.guarantee import Guarantee
from equfl.simulation.transfer import Transfer

PHASES = ("data", "clients", "server", "synthesis", "evaluation", "audit", "files")
"""What the seconds of a run are divided into."""


@dataclass(frozen=True)
class Run:
    """A finished run."""

    config: RunConfig
    federation: Federation
    records: tuple[RoundRecord, ...]
    """One per round, in order."""
    state: ServerState
    """After the last round: the model is ``state.vector``."""
    predictions: Predictions
    """Of the final model, for the test rows of all clients."""
    audits: Mapping[str, Audit]
    """Of these predictions: by the groups of the run first and, where these are intersections of several columns, by
    each column alone."""
    seconds: Mapping[str, float]
    """What each phase took; the baseline's are its own."""
    folder: Path | None
    """Where its files are, if anywhere."""
    privacy: Guarantee | None = None
    """What it guarantees to rows or clients, if its training adds noise."""
    baseline: "Run | None" = None
    """FedAvg with the same seed; the run itself if it is FedAvg; ``None`` if the config wants none."""
    change: Comparison | None = None
    """From the baseline to this run, unless they are the same."""
    transfer: Mapping[str, Transfer] = field(default_factory=dict)
    """Per notion of the target, how much of what was closed on the server's rows was closed on the clients'."""

    @property
    def audit(self) -> Audit:
        """The final model on the test rows of all clients: accuracy, every notion, every group."""
        return next(iter(self.audits.values()))

    @property
    def alone(self) -> dict[str, Audit]:
        """The same by each sensitive column alone; empty where there is one only."""
        return dict(list(self.audits.items())[1:])

    @property
    def result(self) -> dict[str, Any]:
        """What ``result.json`` says; ``docs/run-folder.md`` explains every key."""
        plain = self._plain()
        if self.baseline:
            plain["baseline"] = self.baseline._plain()
        if self.change:
            plain["change"] = _change(self.change)
        if self.transfer:
            plain["transfer"] = {
                name: {key: number(value) for key, value in found.plain().items()}
                for name, found in self.transfer.items()
            }
        return plain

    def _plain(self) -> dict[str, Any]:
        return {
            "preset": self.config.preset,
            "method": self.config.method.name,
            "target": "+".join(part.name for part in self.config.target.parts()),
            "seed": self.config.seed,
            "rounds": self.config.rounds,
            "accuracy": self.audit.accuracy.value,
            "bias": {
                name: {"pooled": number(bias.pooled.value), "client_mean": number(bias.client_mean)}
                for name, bias in self.audit.bias.items()
            },
            "privacy": _guaranteed(self.privacy),
            "baseline": None,
            "change": None,
            "clients": _totals(self.records),
            "transfer": None,
            "seconds": {phase: round(spent, 3) for phase, spent in self.seconds.items()},
            "symbols": {name: bias.symbol for name, bias in self.audit.bias.items()},
            "left_out": dict(self.audit.left_out),
            "remarks": self.config.method.remarks([record.diagnostics for record in self.records]),
            "data": self.federation.name,
            "real_rows": takes_real_rows(self.config.method),
            "simulated": self.federation.facts.get("simulated") == "yes",
            "config": config_hash(self.config),
            "alone": {name: audit.plain() for name, audit in self.alone.items()},
        }


def seconds(records: tuple[RoundRecord, ...], **others: float) -> dict[str, float]:
    """Seconds by phase: those of the rounds added up, and what was spent outside of them."""
    total: Counter[str] = Counter(others)
    for record in records:
        total.update(record.seconds)
    return {phase: total[phase] for phase in PHASES}


def _totals(records: tuple[RoundRecord, ...]) -> dict[str, int]:
    """What became of the participants, added up over the rounds; what the rules tell of their own is not for adding."""
    total: Counter[str] = Counter()
    for record in records:
        total.update({name: int(count) for name, count in record.clients.items() if "/" not in name})
    return dict(total)


def number(value: float) -> float | None:
    """The value as JSON knows it: null where nothing can be said."""
    return value if isfinite(value) else None


def _guaranteed(privacy: Guarantee | None) -> dict[str, Any] | None:
    return None if privacy is None else {**asdict(privacy), "epsilon": number(privacy.epsilon)}


def _change(comparison: Comparison) -> dict[str, Any]:
    return {
        "accuracy": {"pooled": _spelled(comparison.accuracy)},
        **{
            name: {"pooled": _spelled(change), "client_mean": _spelled(comparison.client_mean[name])}
            for name, change in comparison.pooled.items()
        },
    }


def _spelled(change: Change) -> dict[str, Any]:
    return {
        "value": number(change.difference.value),
        "standard_error": number(change.difference.standard_error),
        "beyond_chance": change.beyond_chance,
    }
