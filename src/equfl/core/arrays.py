"""Shaped names for the tensors that cross a border between rooms.

The shapes are checked at run time in the tests only (``pytest`` turns the check on); users pay nothing for them.
"""

from jaxtyping import Float, Int
from torch import Tensor

Vector = Float[Tensor, " parameters"]
"""A model's parameters, or a change of them, as one flat vector."""

Updates = Float[Tensor, "clients parameters"]
"""One row per client: the pseudo-gradient ``(w - w_i) / learning_rate``."""

Shares = Float[Tensor, " clients"]
"""The clients' shares of the data, the paper's alpha; they sum to one over the participants."""

Inputs = Float[Tensor, "samples ..."]
Labels = Int[Tensor, " samples"]
SoftLabels = Float[Tensor, "samples classes"]
Groups = Int[Tensor, " samples"]
SoftGroups = Float[Tensor, "samples groups"]
Logits = Float[Tensor, "samples classes"]
Losses = Float[Tensor, " samples"]
Predictions = Int[Tensor, " samples"]

Neighbours = Int[Tensor, "samples k"]
"""Row numbers of each row's k nearest rows, nearest first, the row itself among them."""

Counts = Float[Tensor, "*batch predictions labels groups"]
"""How many rows fall into each cell (predicted label, true label, group)."""
