"""EquFL inside Flower: a wrapper for any strategy, a mod for any ClientApp, and a grid in one process.

The rest of ``equfl`` never imports this room, so that Flower is needed by those who use it only.
"""

from equfl.flower import _version as _version  # first: what is too old would fail below with a riddle
from equfl.flower.evaluation import counted, pooled
from equfl.flower.inline_grid import InlineGrid
from equfl.flower.mod import feedback_mod, instructions
from equfl.flower.simulated_clients import SimulatedClients
from equfl.flower.strategy import EquFLStrategy

__all__ = ["EquFLStrategy", "InlineGrid", "SimulatedClients", "counted", "feedback_mod", "instructions", "pooled"]
