"""The simulated census: people who do not exist, drawn offline, and as hard to treat fairly as the real ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.random import Seed
from equfl.data import cache
from equfl.data._census_codebook import PARTIES
from equfl.data._census_profile import Profile, read
from equfl.data.base import Federation, Progress
from equfl.data.income import Income
from equfl.data.partition import Rows, sizes_by_count

PROFILE = Path(str(files("equfl.data"))) / "profiles" / "income.json"


@dataclass(frozen=True)
class SimulatedCensus(Income, name="simulated_census"):
    """The task of ``income`` on people drawn from a profile of the census: counts of many people, and a model of who
    earns more than 50 000 dollars. 54 inputs.

    Of each party as many rows are drawn as the real one would train and test on. What FedAvg reaches on them, and how
    unfairly, is within .02 of the real data; figures of single parties and of small groups are only alike.
    """

    seed: int = 0
    """Of the people drawn."""

    def load(self, *, progress: Progress = lambda task, done, total: None) -> Federation:
        return cache.prepared(self, [PROFILE], lambda: self._drawn(progress))

    def whereabouts(self) -> str:
        return "comes with equfl: people are drawn from a profile"

    def _drawn(self, progress: Progress) -> Federation:
        progress("draw the simulated census", 0, 1)
        profile = read(PROFILE)
        sizes = {
            party: sizes_by_count(profile.states[party], train=self.train, test=self.test)
            for party in self.parties or PARTIES
        }

        def split(party: str, rows: int) -> tuple[Rows, Rows]:
            # No two rows have anything to do with each other, so the first ones are as good as any.
            train, _ = sizes[party]
            return torch.arange(train), torch.arange(train, rows)

        return self._federate(
            self._rows(profile, {party: sum(both) for party, both in sizes.items()}),
            tuple(map(self.extract.means, self.features)),
            split,
            {"source": f"drawn from a profile, seed {self.seed} ({profile.source})", "simulated": "yes"},
            progress,
        )

    def _rows(self, profile: Profile, sizes: Mapping[str, int]) -> dict[str, pa.Table]:
        """So many rows of each party, as its part of the extract would be."""
        counts = [sizes.get(state, 0) for state in profile.states]

        def uniform(purpose: str) -> Float[Tensor, " rows"]:
            # Named by the party and not by its place, so that leaving others out does not change its rows.
            seed = Seed(self.seed)
            return torch.cat(
                [
                    torch.rand(count, dtype=torch.float64, generator=seed.generator(f"census {state} {purpose}"))
                    for state, count in zip(profile.states, counts, strict=True)
                ]
            )

        drawn, labels = profile.draw(counts, uniform)
        columns = {
            name: torch.tensor(variable.codes, dtype=torch.int16)[drawn[name]].numpy()
            for name, variable in profile.variables.items()
            if not variable.of
        }
        table = self.extract.known(pa.table({**columns, self.label: labels.numpy()}))
        starts = dict(zip(profile.states, accumulate(counts, initial=0), strict=False))
        return {party: table.slice(starts[party], size) for party, size in sizes.items()}
