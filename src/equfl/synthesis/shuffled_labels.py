"""A control: synthesised rows whose labels are somebody else's."""

from dataclasses import dataclass, replace

import torch

from equfl.core.arrays import Updates
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.samples import Samples
from equfl.synthesis.base import Synthesis
from equfl.synthesis.faithful_matching import FaithfulMatching


@dataclass(frozen=True)
class ShuffledLabels(Synthesis, name="shuffled_labels"):
    """A control, no method: the rows of another synthesis, their labels permuted among all rows.

    Inputs, groups and the shares of the labels stay as they are; what a label has to do with its row is gone. A gain
    that remains does not need it.
    """

    synthesis: Synthesis = FaithfulMatching()
    """Whose rows."""

    def __call__(self, collected: Updates, context: RoundContext) -> tuple[Samples, Diagnostics]:
        samples, told = self.synthesis(collected, context)
        order = torch.randperm(len(samples), generator=context.generator("shuffled labels"))
        return replace(samples, labels=samples.labels[order.to(samples.labels.device)]), told
