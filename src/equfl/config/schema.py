"""A run as one typed value: everything that decides what a run computes."""

from dataclasses import dataclass, field
from typing import Any, Literal

from equfl.aggregation.base import Aggregation
from equfl.core.component import find
from equfl.core.errors import ConfigError
from equfl.data.base import Dataset
from equfl.fairness.base import Notion
from equfl.methods.base import Method, check_pair, check_sums
from equfl.models.base import Model
from equfl.simulation.engines.base import Engine
from equfl.training.base import Training


def _default(base: Any, name: str) -> Any:
    # By name, so that this room knows the axes and not what stands on them.
    return field(default_factory=lambda: find(base, name)())


@dataclass(frozen=True)
class RunConfig:
    """One run. The defaults are the paper's setting for its census tasks."""

    data: Dataset
    """The federation: whose rows, which task, which groups."""
    method: Method = _default(Method, "equfl")
    """How the federation is run."""
    target: Notion = _default(Notion, "equalized_odds")
    """The notion whose bias the run wants lower."""
    model: Model = _default(Model, "mlp")
    """What every client trains."""
    training: Training = _default(Training, "sgd")
    """What a client does in a round."""
    aggregation: Aggregation = _default(Aggregation, "mean")
    """How the clients' updates become one."""
    engine: Engine = _default(Engine, "batched")
    """How many clients are computed on one machine."""
    rounds: int = 100
    seed: int = 0
    participation: float = 1.0
    """Share of the clients that take part in a round."""
    secure_sum: bool = False
    """The server sees nothing but sums over the clients; methods and rules that must see single clients are refused."""
    evaluate_every: int = 1
    """Rounds between two evaluations; the last round is always evaluated."""
    baseline: bool = True
    """Also run FedAvg with the same seed, so that every number has something to be compared with."""
    threads: int = 1
    """Threads of torch. For models as small as the paper's, one is fastest."""
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    """Where the numbers are computed; 'auto' takes the graphics card when there is one."""
    preset: str = ""
    """The preset or file that the config came from; a label only."""

    def __post_init__(self) -> None:
        for name in ("rounds", "evaluate_every", "threads"):
            _demand(getattr(self, name) >= 1, name, getattr(self, name), "a whole number of at least 1")
        _demand(0 < self.participation <= 1, "participation", self.participation, "a share above 0, at most 1")
        check_pair(self.method, self.aggregation)
        if self.secure_sum:
            check_sums(self.method, self.aggregation)


def _demand(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise ConfigError(f"{name} = {value}", wanted=wanted, remedy="See 'equfl describe run'")
