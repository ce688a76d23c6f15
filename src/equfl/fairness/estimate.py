"""How sure a number is: Wilson's interval for a proportion, the bootstrap (Efron, 1979) for everything else.

The bootstrap draws the rows anew, as many as there are, and looks how much the number moves. A number that depends on
the rows through counts only needs no rows for that: drawn anew, the counts are multinomial, which costs the same for a
thousand rows and for a million.
"""

from dataclasses import dataclass
from math import inf, isnan, nan, sqrt

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

RESAMPLES = 1000
NORMAL = 1.959964
"""95 % of a normal distribution lies within this many standard deviations."""


@dataclass(frozen=True)
class Estimate:
    """A number, where it lies with a confidence of 95 %, and its standard error; NaN where nothing can be said."""

    value: float
    low: float = nan
    high: float = nan
    standard_error: float = nan

    @classmethod
    def from_draws(
        cls, value: float, draws: Float[Tensor, " resamples"], *, within: tuple[float, float] = (-inf, inf)
    ) -> "Estimate":
        """The value, and as far to either side as the farther end of the middle 95 % of its bootstrap draws.

        A gap that is 0 in truth is above 0 in every sample, and more so in samples of a sample. So the middle of the
        draws misses a truth of 0 always, while the same turned round is too short for a small gap that is real;
        to the farther end both are covered. Draws without a value (a cell was emptied) do not count.
        """
        known = draws[~draws.isnan()]
        if len(known) < 2 or isnan(value):
            return cls(value)
        low, high = known.quantile(known.new_tensor([0.025, 0.975])).tolist()
        reach = max(value - low, high - value)
        return cls(value, max(within[0], value - reach), min(within[1], value + reach), known.std().item())

    @classmethod
    def of_proportion(cls, part: float, whole: float) -> "Estimate":
        """``part / whole`` with Wilson's interval (1927), which is honest about none out of three, too."""
        if whole == 0:
            return cls(nan)
        value, shrink = part / whole, NORMAL**2 / whole
        centre = (value + shrink / 2) / (1 + shrink)
        reach = sqrt(value * (1 - value) * shrink + shrink**2 / 4) / (1 + shrink)
        # At 0 and at 1 the bound is the value itself but for rounding.
        low, high = min(value, centre - reach), max(value, centre + reach)
        return cls(value, max(0.0, low), min(1.0, high), sqrt(value * (1 - value) / whole))

    @classmethod
    def of_mean(cls, values: Float[Tensor, " values"]) -> "Estimate":
        """The mean of independent values by the normal law; values that are NaN do not count."""
        known = values[~values.isnan()].double()
        if len(known) < 2:
            return cls(known.mean().item())
        value, error = known.mean().item(), known.std().item() / sqrt(len(known))
        return cls(value, value - NORMAL * error, value + NORMAL * error, error)


def resample(
    counts: Float[Tensor, "*cells"], resamples: int, generator: torch.Generator
) -> Float[Tensor, " resamples *cells"]:
    """Tables of the same number of rows, drawn with replacement from the rows of this one."""
    flat = counts.flatten().cpu().double().numpy()
    total = flat.sum()
    # torch draws no multinomial tables; NumPy's generator is told where to begin by ours.
    seed = int(torch.randint(2**63 - 1, (), generator=generator))
    drawn = np.random.default_rng(seed).multinomial(round(total), flat / max(total, 1.0), size=resamples)
    return torch.from_numpy(drawn).double().reshape(resamples, *counts.shape)


def resampled_means(
    values: Float[Tensor, " samples"], resamples: int, generator: torch.Generator
) -> Float[Tensor, " resamples"]:
    """The mean of the values in samples drawn with replacement; quick where only few different values occur."""
    different, counts = values.double().unique(return_counts=True)
    return resample(counts.double(), resamples, generator) @ different.cpu() / max(1, len(values))
