"""DataSyn with rows that can be trusted: a gap closed on them is closed on the clients' rows too, nearly as far.

Symbols: s collected models, ϑ ``gaps``, N ``inner_steps``, ϰ ``iterations``, D_syn the returned samples.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from equfl.core.arrays import Logits, Updates, Vector
from equfl.core.errors import CalibrationError
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.samples import Samples
from equfl.core.vector import Network
from equfl.synthesis._groups import balanced_cells
from equfl.synthesis._matching import Pair, cell_counts, mismatch
from equfl.synthesis._schema_rows import SchemaRows
from equfl.synthesis.base import Synthesis


@dataclass(frozen=True)
class FaithfulMatching(Synthesis, name="faithful_matching"):
    """Rows that obey the schema, labelled at first by the last collected model, then matched to the trajectory.

    The objective is the paper's (see ``trajectory_matching``). What differs is where the rows live and start. Rows of
    free numbers with arbitrary labels retrace the trajectory as well, but lie off the clients' data: a gap between
    groups hardly shows on them, and closing it there leaves it open here. So every categorical column is a softmax that
    starts nearly at one code, the sensitive columns hold valid codes with equally many rows per group, and the label
    logits start as the logits of the last collected model, so that base rates and gaps begin near the real ones.
    """

    samples: int = 1000
    """Rows to synthesise."""
    iterations: int = 300
    """Gradient steps on the rows, the paper's ϰ; most of what there is to gain is gained after 300."""
    gaps: tuple[int, ...] = (5,)
    """Collected models between the two of a pair, the paper's ϑ; of several, one is drawn for each iteration."""
    inner_steps: int = 5
    """Training steps from one model of a pair to the other."""
    target_average: int = 1
    """The target of a pair is the mean of this many models, the last of the gap; more than 1 smooths the noise."""
    input_rate: float = 0.02
    """Adam's rate for the numbers and for the logits of the codes."""
    label_rate: float = 0.05
    """Adam's rate for the label logits."""
    step_rate: float = 1e-3
    """Adam's rate for the logarithm of the inner rate."""
    code_sharpness: float = 8.0
    """Spread of the logits that codes start from; 8 is nearly one code per row and column."""
    limit: float = 5.0
    """Free numbers are kept between minus and plus this."""

    def __call__(self, collected: Updates, context: RoundContext) -> tuple[Samples, Diagnostics]:
        starts = len(collected) - max(self.gaps)
        if starts < 1:
            raise CalibrationError(
                f"{len(collected)} collected models",
                wanted=f"more than the longest of method.synthesis.gaps = {list(self.gaps)}",
                remedy="Run more rounds, raise method.collect_share or lower method.synthesis.gaps",
            )
        generator = context.generator("synthesis")
        _, groups = balanced_cells(self.samples, len(context.schema.classes), len(context.schema.groups), generator)
        rows = SchemaRows.draw(groups, context.schema, self.code_sharpness, generator)
        rows.raw.requires_grad_()
        logits = _logits(context.network, collected[-1], rows.inputs().detach()).requires_grad_()
        log_rate = torch.tensor(context.learning_rate * context.local_steps).log().requires_grad_()
        leaves = [rows.raw, logits, log_rate]
        optimiser = torch.optim.Adam(
            [
                {"params": [p], "lr": r}
                for p, r in zip(leaves, (self.input_rate, self.label_rate, self.step_rate), strict=True)
            ]
        )

        def loss(start: int, gap: int) -> Tensor:
            pair = Pair(
                collected[start], collected[start + gap - self.target_average + 1 : start + gap + 1].mean(dim=0)
            )
            rate = log_rate.exp() * gap / self.inner_steps
            return mismatch(context.network, pair, rows.inputs(), logits.softmax(dim=-1), rate, self.inner_steps)

        with torch.no_grad():
            before = torch.stack([loss(start, max(self.gaps)) for start in range(starts)]).mean().item()
        for iteration in range(self.iterations):
            gap = self.gaps[int(torch.randint(len(self.gaps), (), generator=generator))]
            start = int(torch.randint(len(collected) - gap, (), generator=generator))
            optimiser.zero_grad()
            loss(start, gap).backward()
            torch.nn.utils.clip_grad_norm_(leaves, 1.0)
            optimiser.step()
            rows.clamp(self.limit)
            context.progress("synthesising", iteration + 1, self.iterations)
        with torch.no_grad():
            after = torch.stack([loss(start, max(self.gaps)) for start in range(starts)]).mean().item()
        samples = Samples(
            inputs=rows.inputs().detach(),
            labels=logits.detach().softmax(dim=-1),
            groups=groups,
            classes=len(context.schema.classes),
            group_count=len(context.schema.groups),
        )
        return samples, {
            "synthesis/matching_loss_before": before,
            "synthesis/matching_loss": after,
            "synthesis/inner_rate": log_rate.exp().item(),
            **cell_counts(samples, context.schema),
        }


def _logits(network: Network, vector: Vector, inputs: Tensor) -> Logits:
    # Collected models come without buffers; a batch is normalised by its own statistics, as in the matching.
    scratch = {name: torch.zeros_like(b, device=vector.device) for name, b in network.module.named_buffers()}
    with torch.no_grad():
        return network.forward_training(vector, scratch, inputs)[0].clone()
