"""What a notion of fairness is: a metric on hard predictions and a loss with a gradient."""

from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Counts, Logits, Losses, Predictions, Shares
from equfl.core.component import Component
from equfl.core.samples import Samples, Shards
from equfl.fairness.counts import count
from equfl.fairness.gaps import Gaps


class Notion(Component, kind="notion"):
    """One definition of fairness. The metric is 0 when the notion holds; the loss is what EquFL descends."""

    symbol: ClassVar[str]
    """Short name in tables: EO, DP, CAL, CON."""

    @abstractmethod
    def metric(self, predictions: Predictions, samples: Samples) -> float:
        """The bias of hard predictions; NaN where the rows cannot show it (one group only, say)."""

    @abstractmethod
    def loss(self, logits: Logits, samples: Samples) -> Tensor:
        """The paper's surrogate: a scalar with a gradient, on hard or soft labels and groups."""

    def parts(self) -> tuple["Notion", ...]:
        """The notions that this one is made of: itself, unless it stands for several at once."""
        return (self,)

    def by_client(self, predictions: Predictions, shards: Shards) -> Shares:
        """The metric at each client; NaN where a client's rows cannot show it."""
        parts = zip(predictions.split(shards.sizes), shards, strict=True)
        return torch.tensor([self.metric(part, samples) for part, samples in parts], dtype=torch.float64)


class GroupNotion(Notion):
    """A notion that sees only how many rows fall into each cell (predicted label, true label, group)."""

    @abstractmethod
    def bias(self, counts: Counts, *, min_group_share: float = 0.0) -> Float[Tensor, "*batch"]:
        """The bias of every table at once; groups below the share of a table's rows are ignored."""

    @abstractmethod
    def gaps(self, counts: Counts) -> Gaps:
        """The signed gaps of which the bias is the largest in size; their values have a gradient.

        ``counts`` may be fractions of rows, and one table or several, all of whose gaps count.
        """

    def metric(self, predictions: Predictions, samples: Samples) -> float:
        """The bias of the rows' table, no group ignored."""
        return self.bias(count(predictions, samples)).item()


class RowNotion(Notion):
    """A notion whose metric is a mean over rows."""

    @abstractmethod
    def terms(self, predictions: Predictions, samples: Samples) -> Losses:
        """What each row adds to the mean."""

    def metric(self, predictions: Predictions, samples: Samples) -> float:
        """The mean of the terms; NaN for fewer than two rows."""
        return self.terms(predictions, samples).double().mean().item() if len(samples) > 1 else float("nan")
