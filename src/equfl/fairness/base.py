"""What a notion of fairness is: a metric on hard predictions and a loss with a gradient."""

from abc import abstractmethod

from torch import Tensor

from equfl.core.arrays import Logits, Predictions
from equfl.core.component import Component
from equfl.core.samples import Samples


class Notion(Component, kind="notion"):
    """One definition of fairness. The metric is 0 when the notion holds; the loss is what EquFL descends."""

    symbol: str
    """Short name in tables: EO, DP, CAL, CON."""

    @abstractmethod
    def metric(self, predictions: Predictions, samples: Samples) -> float:
        """The bias of hard predictions; NaN where the rows cannot show it (one group only, say)."""

    @abstractmethod
    def loss(self, logits: Logits, samples: Samples) -> Tensor:
        """The paper's surrogate: a scalar with a gradient, on hard or soft labels and groups."""
