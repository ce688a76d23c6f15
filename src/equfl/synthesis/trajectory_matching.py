"""DataSyn, the paper's Algorithm 1: synthetic rows that retrace the trajectory of the global model.

Symbols: s collected models, ϑ ``match_steps``, ϰ ``iterations``, D_syn the returned samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from equfl.core.arrays import Inputs, SoftLabels, Updates
from equfl.core.errors import ConfigError
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.samples import Samples
from equfl.models.base import Model
from equfl.synthesis._distilling import of_network
from equfl.synthesis._groups import balanced_cells, decoded_groups, set_codes
from equfl.synthesis._matching import Draft, Search, Trajectory
from equfl.synthesis.base import Synthesis


@dataclass(frozen=True)
class TrajectoryMatching(Synthesis, name="trajectory_matching"):
    """Rows on which ϑ training steps lead from each collected model to the one ϑ rounds later.

    Minimises, over pairs drawn at random, ``||w_N - w^{τ+ϑ}||² / ||w^τ - w^{τ+ϑ}||²``, where ``w_N`` is ``w^τ`` after N
    full-batch steps on the synthetic rows. Near 1 means no better than not moving.

    Differs from the paper where the paper cannot be run as written. Labels are logits under a softmax, because plain
    descent on labels leaves the simplex. The objective is divided by the distance to be covered, so that late pairs,
    which are close together, count. Adam takes the place of descent at an unstated rate. The inner rate is learned,
    starting where N steps cover the ground of ϑ rounds: the paper has one rate for everything, but a stored round is
    many local steps. The training of the network f starts from the collected weights, which only a network of the
    clients' architecture can; so that is the default, and another f is taught what the collected models answer.
    """

    samples: int = 1000
    """Rows to synthesise."""
    iterations: int = 1000
    """Gradient steps on the rows, the paper's ϰ."""
    match_steps: int = 5
    """Rounds between the two models of a pair, and training steps from one to the other: the paper's ϑ."""
    sensitive: Literal["free", "fixed"] = "free"
    """``free``: the sensitive inputs are optimised like all others and read as soft groups (the paper). ``fixed``: they
    are valid codes, balanced over labels and groups, and stay as they are."""
    network: Model | None = None
    """The paper's f. ``none`` is the clients' model; ``mlp`` with ``hidden`` [64], [64, 32] or [128] is the paper's
    StandardMLP, DeepMLP or WideMLP."""
    input_rate: float = 0.05
    """Adam's rate for the inputs."""
    label_rate: float = 0.01
    """Adam's rate for the label logits."""
    step_rate: float = 1e-3
    """Adam's rate for the logarithm of the inner rate."""
    label_start: float = 4.0
    """Logit of a row's first label; the others start at 0."""
    limit: float = 5.0
    """Inputs are kept between minus and plus this."""

    def __post_init__(self) -> None:
        for name in ("samples", "iterations", "match_steps"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"method.synthesis.{name} = {getattr(self, name)}",
                    wanted="1 or more",
                    remedy="The paper uses 1000 samples",
                )

    def __call__(self, collected: Updates, context: RoundContext) -> tuple[Samples, Diagnostics]:
        generator = context.generator("synthesis")
        trajectory = Trajectory(context.network, collected, (self.match_steps,))
        draft = self._draft(context, generator, like=collected)
        trajectory, taught = of_network(self.network, trajectory, draft.inputs().detach(), context)
        told = {**taught, **Search(trajectory, self.iterations, self.match_steps)(draft, context, generator)}
        samples = draft.samples(context)
        return samples, told

    def _draft(self, context: RoundContext, generator: torch.Generator, *, like: Tensor) -> "FreeRows":
        schema = context.schema
        labels, groups = balanced_cells(self.samples, len(schema.classes), len(schema.groups), generator)
        inputs = torch.randn(self.samples, *schema.shape, generator=generator)
        # Without the attribute among the inputs the groups cannot be read off the rows, so they are assigned.
        free = self.sensitive == "free" and bool(schema.group_codes)
        fixed = None
        if not free and schema.group_codes:
            inputs, fixed = set_codes(inputs, groups, schema)
        one_hot = torch.nn.functional.one_hot(labels, len(schema.classes)).T.contiguous()
        return FreeRows(
            settings=self,
            values=inputs.to(like).requires_grad_(),
            label_logits=(self.label_start * one_hot).to(like).requires_grad_(),
            log_rate=torch.tensor(context.learning_rate * context.local_steps).log().to(like).requires_grad_(),
            groups=None if free else groups.to(like.device),
            fixed=None if fixed is None else fixed.to(like.device),
            codes=None if fixed is None else inputs[:, fixed].to(like),
        )


@dataclass
class FreeRows(Draft):
    """Rows of free numbers: the leaves being optimised, and what is kept as it is."""

    settings: TrajectoryMatching
    values: Tensor
    label_logits: Tensor
    """One class per row, one sample per column: so the softmax over few classes is fast."""
    log_rate: Tensor
    groups: Tensor | None
    """Groups assigned from the start; ``None`` where they are read off the inputs."""
    fixed: Tensor | None
    """Inputs that may not change, and keep the codes."""
    codes: Tensor | None

    def inputs(self) -> Inputs:
        return self.values

    def labels(self) -> SoftLabels:
        return self.label_logits.softmax(dim=0).T

    def leaves(self) -> Mapping[Tensor, float]:
        rates = self.settings
        return {
            self.values: rates.input_rate,
            self.label_logits: rates.label_rate,
            self.log_rate: rates.step_rate,
        }

    @torch.no_grad()
    def project(self) -> None:
        """Bounded inputs, and fixed ones as they were."""
        self.values.clamp_(-self.settings.limit, self.settings.limit)
        if self.fixed is not None and self.codes is not None:
            self.values[:, self.fixed] = self.codes

    def samples(self, context: RoundContext) -> Samples:
        """The rows as they are now, with soft labels and, where they are read off the inputs, soft groups."""
        inputs = self.values.detach().clone()
        groups = decoded_groups(inputs, context.schema) if self.groups is None else self.groups
        return Samples(
            inputs=inputs,
            labels=self.labels().detach().contiguous(),
            groups=groups,
            classes=len(context.schema.classes),
            group_count=len(context.schema.groups),
        )
