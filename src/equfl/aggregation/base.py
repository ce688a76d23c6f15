"""What an aggregation rule is: updates in, one update out, and a word on whose it was."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from equfl.core.arrays import Shares, Updates, Vector
from equfl.core.component import Component
from equfl.core.errors import ConfigError
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.vector import Network


@dataclass(frozen=True)
class Aggregated:
    """What a rule makes of a round's updates."""

    vector: Vector
    """The one update; zero where the rule accepts nobody's."""
    accepted: Tensor | None = None
    """Per client, whether its update had a part in it; ``None`` stands for everybody's."""
    diagnostics: Diagnostics = field(default_factory=dict)
    """Numbers for the round's record."""


class Aggregation(Component, kind="aggregation"):
    """Turns the participants' updates into one. The calibrated update is never among them.

    A rule is called with finite updates of equal length, one per row, at least one; it does not depend on the order of
    the clients. Where fewer clients are left than the rule needs, it does what its own page says.
    """

    sums_only: ClassVar[bool] = False
    """Whether sums over the clients are all that the rule needs of them; if not, it must see single updates."""
    uses_shares: ClassVar[bool] = False
    """Whether a client counts by its share of the rows. Rules that distrust clients do not: they would have to take
    each client's word for how many rows it has."""

    @abstractmethod
    def __call__(self, updates: Updates, shares: Shares, context: RoundContext) -> Aggregated:
        """One update for the round."""

    def needs(self, clients: int) -> int:
        """With so many participants, how many the rule must have to outvote a single one that is far off."""
        return 1

    def check(self, clients: int, network: Network) -> None:
        """Refuse, before the first round, to aggregate so many participants' updates of such a model."""
        if clients < self.needs(clients):
            raise ConfigError(
                f"aggregation = {self} with {clients} participant{'s' * (clients > 1)} in a round",
                wanted=f"at least {self.needs(clients)}",
                remedy="Raise participation, change the rule's settings, or choose aggregation = 'mean'",
            )


class Tally:
    """A rule at work in one round: applies it, and keeps what the record is to say about the clients."""

    def __init__(self, rule: Aggregation, participants: Sequence[int]) -> None:
        self.rule = rule
        self.participants = participants
        self.usable: Sequence[int] = participants
        """The clients of the rows that the rule is given."""
        self._accepted: Sequence[int] | None = None
        self._told: Diagnostics = {}

    def apply(self, updates: Updates, shares: Shares, context: RoundContext) -> Vector:
        """The rule's update."""
        aggregated = self.rule(updates, shares, context)
        self._told = {f"{self.rule.name}/{name}": value for name, value in aggregated.diagnostics.items()}
        if aggregated.accepted is not None:
            marks = zip(self.usable, aggregated.accepted.tolist(), strict=True)
            self._accepted = tuple(client for client, accepted in marks if accepted)
        return aggregated.vector

    @property
    def accepted(self) -> Sequence[int]:
        """The clients whose updates had a part."""
        return self.usable if self._accepted is None else self._accepted

    @property
    def rejected(self) -> tuple[int, ...]:
        """The other participants, whatever the reason."""
        return tuple(sorted({*self.participants} - {*self.accepted}))

    @property
    def numbers(self) -> Diagnostics:
        """For the record: what happened, and nothing for what did not."""
        counts = {
            "not_finite": len(self.participants) - len(self.usable),
            "rejected": len(self.usable) - len(self.accepted),
            "too_few": int(len(self.usable) < self.rule.needs(len(self.usable))),
            "idle": int(not self.accepted),
        }
        return {name: float(count) for name, count in counts.items() if count} | dict(self._told)
