"""Several notions at once, for runs that must answer to more than one."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from equfl.core.arrays import Logits, Predictions
from equfl.core.errors import ConfigError
from equfl.core.samples import Samples, Shards
from equfl.fairness.base import Notion
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds


@dataclass(frozen=True)
class Several(Notion, name="several"):
    """The worst of several notions. A method that can weigh them against each other looks at the parts.

    They may be in conflict: where base rates differ, equalized odds and calibration cannot both hold, and demographic
    parity asks for less than either. What one costs the other is printed at the end of the run.
    """

    symbol: ClassVar[str] = "ALL"

    notions: tuple[Notion, ...] = (EqualizedOdds(), DemographicParity())
    """The notions; none of them twice."""

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts()]
        if len(names) < 2 or len(set(names)) < len(names):
            raise ConfigError(
                f"target.notions = {names}", wanted="two notions or more, each once", remedy="Write --target eo+dp"
            )

    def parts(self) -> tuple[Notion, ...]:
        return tuple(part for notion in self.notions for part in notion.parts())

    def metric(self, predictions: Predictions, samples: Samples) -> float:
        """The largest metric among the notions; NaN if one of them is."""
        return torch.tensor([part.metric(predictions, samples) for part in self.parts()]).amax().item()

    def loss(self, logits: Logits, samples: Samples) -> Tensor:
        """The sum of their losses."""
        return torch.stack([part.loss(logits, samples) for part in self.parts()]).sum()

    def by_client(self, predictions: Predictions, shards: Shards) -> Tensor:
        """The largest of each client."""
        return torch.stack([part.by_client(predictions, shards) for part in self.parts()]).amax(dim=0)
