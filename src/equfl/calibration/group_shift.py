"""One direction per group: every member's margin moves by the same amount, and nobody else's."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import jacrev, vmap

from equfl.calibration.base import Directions, Place, Scope, last_layer, sensitive_weights, span_of
from equfl.core.errors import ConfigError
from equfl.fairness.rates import margins


@dataclass(frozen=True)
class GroupShift(Scope, name="group_shift"):
    """The change of the sensitive inputs' weights and of the last layer that best shifts one group's margins by 1.

    With ``A[z]`` the gradient of row z's margin and ``h[z] = p(1 - p)`` its weight in the training loss, the direction
    of group g minimises ``sum_z h[z] (A[z] u - 1[z in g])² + ridge * |u|²`` on the synthetic rows: one least-squares
    problem for all groups. On real rows the shift is then nearly the same for all members too, because the synthetic
    rows only have to say how to produce a constant. It does what a threshold per group does after training, without
    anybody having to look at the group when predicting.

    A model that does not see the attribute has the last layer only, which can shift a group so far as the features
    tell who belongs to it. With more than two classes there is one direction per class and group.
    """

    ridge: float = 0.1
    """Weight of the penalty on long changes, in multiples of the mean curvature."""

    def __post_init__(self) -> None:
        if self.ridge <= 0:
            raise ConfigError(f"scope.ridge = {self.ridge}", wanted="a number above 0", remedy="The default is 0.1")

    def directions(self, place: Place) -> Directions:
        layout = place.network.layout
        entries = torch.cat([sensitive_weights(layout, place.schema), last_layer(layout)]).to(place.vector.device)
        slopes, weights = _slopes(place, entries)
        groups = place.synthetic.group_weights()
        weighted = slopes * weights.unsqueeze(2)
        curvature = torch.einsum("nci,ncj->ij", weighted, slopes) / len(slopes)
        curvature.diagonal().add_(self.ridge * curvature.diagonal().mean())
        wished = torch.einsum("nci,ng->icg", weighted, groups).flatten(1) / len(slopes)
        changes = torch.linalg.solve(curvature, wished)
        rows = place.vector.new_zeros(changes.shape[1], layout.size)
        return span_of(rows.index_copy(1, entries, changes.T.contiguous()))


def _slopes(place: Place, entries: Tensor) -> tuple[Float[Tensor, "n margins entries"], Float[Tensor, "n margins"]]:
    """Of each row, the gradient of its margins in those entries, and the margins' weight in the training loss."""

    def margins_at(moved: Tensor, row: Tensor) -> Tensor:
        vector = place.vector.index_add(0, entries, moved)
        return margins(place.network.forward(vector, place.buffers, row.unsqueeze(0))).squeeze(0)

    still = place.vector.new_zeros(len(entries))
    slopes = vmap(jacrev(margins_at), in_dims=(None, 0))(still, place.synthetic.inputs).detach()
    with torch.no_grad():
        logits = place.network.forward(place.vector, place.buffers, place.synthetic.inputs)
        positive = torch.sigmoid(margins(logits))
    return slopes, positive * (1 - positive)
