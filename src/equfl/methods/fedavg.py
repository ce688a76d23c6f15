"""Federated averaging (McMahan et al., 2017)."""

from dataclasses import dataclass

from equfl.methods.base import Method


@dataclass(frozen=True)
class FedAvg(Method, name="fedavg"):
    """Train locally, aggregate, repeat: every hook as it is in the base. The yardstick of all comparisons."""

    def shared_rounds(self, rounds: int) -> int:
        return rounds
