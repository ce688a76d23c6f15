"""Regular, the paper's naive rival: every client adds the fairness loss to its own."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Inputs, Logits, Neighbours
from equfl.core.errors import ConfigError
from equfl.core.samples import Samples
from equfl.fairness.base import GroupNotion, Notion
from equfl.methods.base import Method, Tensors


@dataclass(frozen=True)
class Regular(Method, name="regular"):
    """Clients descend ``cross-entropy + weight * F`` with F the target's loss on the same batch; then FedAvg.

    F is the surrogate that ``equfl`` descends on its synthetic rows. Cells (label, group) with a single row in the
    batch are left out of it: one row says nothing of a group. A batch with one group only is trained as in FedAvg. For
    consistency, which compares near rows, the near rows are searched within the batch.

    What is fair at each client need not be fair for all together: that is the method's known weakness.
    """

    weight: float = 0.1
    """Weight of the fairness loss, the paper's λ, of which it gives no value. With 1, a model of the census tasks says
    the same of everybody."""

    def __post_init__(self) -> None:
        if self.weight < 0:
            raise ConfigError(f"method.weight = {self.weight}", wanted="0 or more", remedy="The default is 0.1")

    def objective(self, logits: Logits, samples: Samples, instructions: Tensors, target: Notion) -> Tensor:
        loss = super().objective(logits, samples, instructions, target)
        for part in target.parts():
            loss = loss + self.weight * part.loss(logits, _comparable(samples, part))
        return loss


def _comparable(samples: Samples, notion: Notion) -> Samples:
    if not isinstance(notion, GroupNotion):
        return replace(samples, neighbours=_near(samples.inputs))
    return replace(samples, groups=_memberships(samples))


def _memberships(samples: Samples) -> Float[Tensor, "samples groups"]:
    """Each row in its group, and the rows that are alone in their cell in none."""
    labels, groups = samples.label_weights(), samples.group_weights()
    sizes = torch.einsum("ny,na->ya", labels, groups)
    several = torch.einsum("ny,na,ya->n", labels, groups, (sizes > 1).to(groups))
    return groups * several.unsqueeze(1)


def _near(inputs: Inputs, k: int = 5) -> Neighbours:
    flat = inputs.flatten(1)
    # Squared distances but for what all candidates of a row have in common.
    apart = flat.square().sum(dim=1) - 2 * flat @ flat.T
    return apart.topk(min(k, len(flat)), largest=False).indices
