"""DataSyn, the paper's Algorithm 1: synthetic rows that retrace the trajectory of the global model.

Symbols: s collected models, ϑ ``match_steps``, ϰ ``iterations``, D_syn the returned samples.
"""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from equfl.core.arrays import Updates, Vector
from equfl.core.errors import CalibrationError, ConfigError
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.samples import Samples
from equfl.synthesis._groups import balanced_cells, decoded_groups, set_codes
from equfl.synthesis.base import Synthesis

NUDGE = 1e-12
"""A pair of models closer than this (squared) did not move; matching it would divide by nothing."""


@dataclass(frozen=True)
class TrajectoryMatching(Synthesis, name="trajectory_matching"):
    """Rows on which ϑ training steps lead from each collected model to the one ϑ rounds later.

    Minimises, over pairs drawn at random, ``||w_N - w^{τ+ϑ}||² / ||w^τ - w^{τ+ϑ}||²``, where ``w_N`` is ``w^τ`` after N
    full-batch steps on the synthetic rows. Near 1 means no better than not moving.

    Differs from the paper where the paper cannot be run as written. Labels are logits under a softmax, because plain
    descent on labels leaves the simplex. The objective is divided by the distance to be covered, so that late pairs,
    which are close together, count. Adam takes the place of descent at an unstated rate. The inner rate is learned,
    starting where N steps cover the ground of ϑ rounds: the paper has one rate for everything, but a stored round is
    many local steps. The network f has the clients' architecture, because the training starts from their weights.
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
        starts = len(collected) - self.match_steps
        if starts < 1:
            raise CalibrationError(
                f"{len(collected)} collected models",
                wanted=f"more than match_steps = {self.match_steps}",
                remedy="Run more rounds, raise method.collect_share or lower method.synthesis.match_steps",
            )
        generator = context.generator("synthesis")
        draft = self._draft(context, generator, like=collected)
        before = self._mean_mismatch(draft, collected, context)

        schedule = torch.randint(starts, (self.iterations,), generator=generator).tolist()
        optimiser = torch.optim.Adam(
            [
                {"params": [draft.inputs], "lr": self.input_rate},
                {"params": [draft.label_logits], "lr": self.label_rate},
                {"params": [draft.log_rate], "lr": self.step_rate},
            ]
        )
        for iteration, start in enumerate(schedule):
            mismatch = self._mismatch(draft, collected[start], collected[start + self.match_steps], context)
            optimiser.zero_grad()
            mismatch.backward()
            torch.nn.utils.clip_grad_norm_(draft.leaves(), 1.0)
            optimiser.step()
            draft.project(self.limit)
            context.progress("synthesising", iteration + 1, self.iterations)

        samples = draft.samples(context)
        cells = samples.label_weights().T @ samples.group_weights()
        return samples, {
            "synthesis/matching_loss_before": before,
            "synthesis/matching_loss": self._mean_mismatch(draft, collected, context),
            "synthesis/inner_rate": draft.log_rate.exp().item(),
        } | {
            f"synthesis/rows/{label}/{group}": cells[y, a].item()
            for y, label in enumerate(context.schema.classes)
            for a, group in enumerate(context.schema.groups)
        }

    def _draft(self, context: RoundContext, generator: torch.Generator, *, like: Tensor) -> "Draft":
        schema = context.schema
        labels, groups = balanced_cells(self.samples, len(schema.classes), len(schema.groups), generator)
        inputs = torch.randn(self.samples, *schema.shape, generator=generator)
        # Without the attribute among the inputs the groups cannot be read off the rows, so they are assigned.
        free = self.sensitive == "free" and bool(schema.group_codes)
        fixed = None
        if not free and schema.group_codes:
            inputs, fixed = set_codes(inputs, groups, schema)
        rate = context.learning_rate * context.local_steps
        return Draft(
            inputs=inputs.to(like).requires_grad_(),
            label_logits=(self.label_start * torch.nn.functional.one_hot(labels, len(schema.classes)))
            .to(like)
            .requires_grad_(),
            log_rate=torch.tensor(rate).log().to(like).requires_grad_(),
            groups=None if free else groups.to(like.device),
            fixed=None if fixed is None else fixed.to(like.device),
        )

    def _mismatch(self, draft: "Draft", start: Vector, target: Vector, context: RoundContext) -> Tensor:
        distance = (start - target).square().sum()
        if distance < NUDGE:
            return 0 * draft.inputs.sum()
        labels, rate, vector = draft.label_logits.softmax(dim=-1), draft.log_rate.exp(), start
        for _ in range(self.match_steps):
            vector = vector - rate * context.network.mean_gradient(vector, draft.inputs, labels)
        return (vector - target).square().sum() / distance

    def _mean_mismatch(self, draft: "Draft", collected: Updates, context: RoundContext) -> float:
        with torch.no_grad():
            pairs = zip(collected[: -self.match_steps], collected[self.match_steps :], strict=True)
            every = [self._mismatch(draft, start, target, context) for start, target in pairs]
            return torch.stack(every).mean().item()


@dataclass(frozen=True)
class Draft:
    """The leaves being optimised, and what is kept as it is."""

    inputs: Tensor
    label_logits: Tensor
    log_rate: Tensor
    """Logarithm of the inner rate, which so stays positive."""
    groups: Tensor | None = None
    """Groups assigned from the start; ``None`` where they are read off the inputs."""
    fixed: Tensor | None = None
    """Inputs that may not change."""
    values: Tensor = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", self.inputs.detach().clone())

    def leaves(self) -> list[Tensor]:
        return [self.inputs, self.label_logits, self.log_rate]

    @torch.no_grad()
    def project(self, limit: float) -> None:
        """Back to what is allowed: bounded inputs, and fixed ones as they were."""
        self.inputs.clamp_(-limit, limit)
        if self.fixed is not None:
            self.inputs[:, self.fixed] = self.values[:, self.fixed]

    def samples(self, context: RoundContext) -> Samples:
        """The rows as they are now, with soft labels and, where they are read off the inputs, soft groups."""
        inputs = self.inputs.detach().clone()
        groups = decoded_groups(inputs, context.schema) if self.groups is None else self.groups
        return Samples(
            inputs=inputs,
            labels=self.label_logits.detach().softmax(dim=-1),
            groups=groups,
            classes=len(context.schema.classes),
            group_count=len(context.schema.groups),
        )
