"""EquFL, open loop: the calibration problem solved on the server's own rows, with the paper's information only."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from equfl.calibration.base import Place
from equfl.calibration.problem import Problem, accuracy_of, synthetic_margins, synthetic_rates, tables_of
from equfl.calibration.smoothing import Smoothing
from equfl.calibration.tradeoff import tradeoff
from equfl.core.arrays import Vector
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.fairness.base import GroupNotion
from equfl.fairness.rates import soft_tables
from equfl.methods._calibrating import Calibrating, importance


@dataclass(frozen=True)
class EquFLSolve(Calibrating, name="equfl_solve"):
    """Close most of the synthetic gap in the last round, and trust that the real one closes with it.

    Nothing is asked of the clients beyond FedAvg. How far the real gap follows cannot be seen from here: on census data
    it follows nearly one to one in the first calibrated round, and less with every further one, because the clients'
    training finds ways around that the synthetic rows do not show. So the default calibrates once.
    """

    settle: int = 1
    close: float = 0.8
    """Share of the synthetic gap to close. Less than all of it costs less accuracy, and leaves room for error."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.close <= 2:
            raise ConfigError(
                f"method.close = {self.close}",
                wanted="a share between 0 and 2",
                remedy="The default is 0.8; more than 1 turns the synthetic gap round",
            )

    def settle_down(
        self,
        place: Place,
        notions: Sequence[GroupNotion],
        state: ServerState,
        cohort: Cohort,
        context: RoundContext,
        memory: dict[str, Tensor],
    ) -> tuple[Vector, Diagnostics]:
        directions, told = self.directions(place)
        with torch.no_grad():
            margins = synthetic_margins(place.network, place.vector, place.buffers, place.synthetic)
            rows = soft_tables(margins, place.synthetic, sharpness=self.sharpness).sum(dim=1)
        problem = Problem(
            place=place,
            directions=directions,
            notions=notions,
            sharpness=self.sharpness,
            expect=lambda rates: tables_of(rates, rows),
            reference=self.reference(place, state, memory),
            importance=importance(place.synthetic, rows[0].sum(dim=0) / rows[0].sum()),
            harm=self.harm,
            steps=self.solve_steps,
            longest=self.step_limit,
        )
        before = problem.gaps(tables_of(synthetic_rates(margins, place.synthetic, self.sharpness), rows))
        allowed = state.memory.get("calibration/allowed")
        if allowed is None:
            # Decided once, so that several rounds close the share together and not each anew.
            allowed = memory["calibration/allowed"] = abs(1 - self.close) * before.values.abs()
        answer = problem.answer(allowed)
        final = context.round == context.rounds
        return answer.vector, {
            **told,
            **(tradeoff(problem, allowed, answer.expected) if final else {}),
            "calibration/synthetic_gap_before": before.largest(),
            "calibration/synthetic_gap": problem.gaps(answer.expected).largest(),
            "calibration/solve_steps": float(answer.steps),
            "calibration/cells_without_rows": float((rows <= 0).sum()),
            "calibration/synthetic_accuracy": accuracy_of(answer.expected).item(),
        }

    def smooth_out(
        self, place: Place, state: ServerState, cohort: Cohort, context: RoundContext, memory: dict[str, Tensor]
    ) -> tuple[Vector, Diagnostics]:
        length = context.learning_rate * self.smoothing
        return Smoothing().smoothed(place, length, context.generator("smoothing")), {"calibration/smoothing": length}
