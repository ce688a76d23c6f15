"""One seed, many generators: each is named by its purpose, round and client.

A generator depends on nothing that happened before, so a resumed run draws the same numbers as one that never
stopped, clients may be trained in any order, and no generator state is ever saved.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

import torch

Draws = Callable[[str], torch.Generator]
"""Purpose -> the generator for it, where round and client are settled."""


@dataclass(frozen=True)
class Seed:
    """The seed of a run, from which every generator is derived."""

    value: int = 0

    def generator(self, purpose: str, *, round: int = 0, client: int = 0) -> torch.Generator:
        """The generator for ``purpose`` (say ``"shuffle"``) in this round at this client; always on the CPU."""
        name = f"{self.value}/{purpose}/{round}/{client}".encode()
        generator = torch.Generator()
        # mt19937 is seeded from 64 bits; the sign bit is left out because torch reads a signed number.
        generator.manual_seed(int.from_bytes(blake2b(name, digest_size=8).digest(), "big") >> 1)
        return generator
