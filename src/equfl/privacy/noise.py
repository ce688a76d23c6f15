"""Clip, then add noise: the two halves of every private release."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Updates
from equfl.core.errors import ConfigError
from equfl.privacy.gaussian import check_delta


def clipped(vectors: Float[Tensor, "*batch parameters"], clip: float) -> Float[Tensor, "*batch parameters"]:
    """Each vector, shortened to the length ``clip`` if it is longer: ``v * min(1, clip / |v|)``."""
    return vectors * shrinking(vectors.norm(dim=-1, keepdim=True), clip)


def shrinking(lengths: Tensor, clip: float) -> Tensor:
    """What to multiply vectors of these lengths by, so that none is longer than ``clip``."""
    return (clip / lengths).clamp(max=1)


def noisy(vectors: Updates, deviation: float, generators: Sequence[torch.Generator]) -> Updates:
    """Each row plus normal noise of that standard deviation, drawn on the CPU from the row's own generator."""
    if deviation == 0:
        return vectors
    noise = torch.stack([torch.randn(vectors.shape[1], generator=generator) for generator in generators])
    return vectors + deviation * noise.to(vectors)


def check_noise(clip: float, noise: float, delta: float) -> None:
    """Refuse settings with which nothing would be left, or nothing be said."""
    if not (clip > 0 and noise >= 0):
        raise ConfigError(
            f"training.clip = {clip}, training.noise = {noise}",
            wanted="a length above 0, and noise of 0 or more",
            remedy="The paper uses 0.05, and noise of 0.1 to 0.3",
        )
    check_delta(delta)
