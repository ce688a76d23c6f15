"""DataSyn with rows that can be trusted: a gap closed on them is closed on the clients' rows too, nearly as far.

Symbols: s collected models, ϑ ``gaps``, N ``inner_steps``, ϰ ``iterations``, D_syn the returned samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from equfl.core.arrays import Inputs, SoftLabels, Updates
from equfl.core.errors import ConfigError
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.samples import Samples
from equfl.models.base import Model
from equfl.synthesis._distilling import of_network
from equfl.synthesis._groups import balanced_cells
from equfl.synthesis._matching import Draft, Search, Trajectory
from equfl.synthesis._schema_rows import SchemaRows
from equfl.synthesis._training import Way, logits_of
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
    patience: int = 0
    """Stop early when the mean loss of so many iterations is not 1 % below that of as many before; 0 means never."""
    gaps: tuple[int, ...] = (5,)
    """Collected models between the two of a pair, the paper's ϑ; of several, one is drawn for each iteration."""
    inner_steps: int = 5
    """Training steps from one model of a pair to the other."""
    batch: int = 0
    """Rows that a training step sees, the next ones of a random order; 0 means all."""
    target_average: int = 1
    """The target of a pair is the mean of this many models, the last of the gap; more than 1 smooths the noise."""
    network: Model | None = None
    """The paper's f, which is trained on the rows. ``none`` is the clients' model. Another one is first taught to
    answer like each of the collected models, and its weights are then matched: ``mlp`` with ``hidden`` [64], [64, 32]
    or [128] is the paper's StandardMLP, DeepMLP or WideMLP."""
    gradient: Way = "auto"
    """``unrolled``: autograd keeps all training steps. ``stepwise``: the same gradient one step at a time, so that its
    memory does not grow with them. ``tesla``: stepwise without the rows' effect on later steps (Cui et al., 2023).
    ``auto``: stepwise where the model has its derivatives by hand or 100 000 parameters, unrolled otherwise."""
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

    def __post_init__(self) -> None:
        for name in ("samples", "iterations", "inner_steps", "target_average"):
            _demand(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name in ("patience", "batch"):
            _demand(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
        _demand(bool(self.gaps) and min(self.gaps) >= 1, "gaps", list(self.gaps), "whole numbers, 1 or more")
        shortest = min(self.gaps)
        _demand(self.target_average <= shortest, "target_average", self.target_average, f"at most the gap, {shortest}")

    def __call__(self, collected: Updates, context: RoundContext) -> tuple[Samples, Diagnostics]:
        trajectory = Trajectory(context.network, collected, self.gaps, self.target_average)
        generator = context.generator("synthesis")
        draft = self._draft(collected, context, generator)
        trajectory, taught = of_network(self.network, trajectory, draft.inputs().detach(), context)
        search = Search(trajectory, self.iterations, self.inner_steps, self.batch, self.gradient, self.patience)
        told = {**taught, **search(draft, context, generator)}
        samples = Samples(
            inputs=draft.inputs().detach().contiguous(),
            labels=draft.labels().detach().contiguous(),
            groups=draft.rows.groups,
            classes=len(context.schema.classes),
            group_count=len(context.schema.groups),
        )
        return samples, told

    def _draft(self, collected: Updates, context: RoundContext, generator: torch.Generator) -> "FaithfulRows":
        _, groups = balanced_cells(self.samples, len(context.schema.classes), len(context.schema.groups), generator)
        rows = SchemaRows.draw(groups, context.schema, self.code_sharpness, generator).to(collected)
        logits = logits_of(context.network, collected[-1], rows.inputs())
        rows.raw.requires_grad_()
        return FaithfulRows(
            settings=self,
            rows=rows,
            label_logits=logits.T.contiguous().requires_grad_(),
            log_rate=torch.tensor(context.learning_rate * context.local_steps).log().to(collected).requires_grad_(),
        )


@dataclass
class FaithfulRows(Draft):
    """The rows with their label logits and the inner rate: the leaves being optimised."""

    settings: FaithfulMatching
    rows: SchemaRows
    label_logits: Tensor
    """One class per row, one sample per column: so the softmax over few classes is fast."""
    log_rate: Tensor

    def inputs(self) -> Inputs:
        return self.rows.inputs()

    def labels(self) -> SoftLabels:
        return self.label_logits.softmax(dim=0).T

    def leaves(self) -> Mapping[Tensor, float]:
        rates = self.settings
        return {
            self.rows.raw: rates.input_rate,
            self.label_logits: rates.label_rate,
            self.log_rate: rates.step_rate,
        }

    def project(self) -> None:
        self.rows.clamp(self.settings.limit)


def _demand(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise ConfigError(f"method.synthesis.{name} = {value}", wanted=wanted, remedy="See 'equfl describe'")
