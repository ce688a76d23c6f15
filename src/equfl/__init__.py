"""Fair federated learning from the server's side: EquFL, its rivals, a fast simulator, and honest measurements.

``equfl.run("quickstart")`` is the way in. Each name is loaded when it is first used, so ``import equfl`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equfl.aggregation.base import Aggregation as Aggregation
    from equfl.config.files import read_config as read_config
    from equfl.config.presets import load_preset as load_preset
    from equfl.config.schema import RunConfig as RunConfig
    from equfl.core.errors import EquflError as EquflError
    from equfl.core.protocol import Cohort as Cohort
    from equfl.core.protocol import RoundContext as RoundContext
    from equfl.core.protocol import RoundRecord as RoundRecord
    from equfl.core.protocol import ServerState as ServerState
    from equfl.core.samples import Samples as Samples
    from equfl.core.schema import Schema as Schema
    from equfl.data.base import Dataset as Dataset
    from equfl.data.base import Federation as Federation
    from equfl.data.table import federate_table as federate_table
    from equfl.fairness.audit import Audit as Audit
    from equfl.fairness.audit import audit as audit
    from equfl.fairness.base import Notion as Notion
    from equfl.methods.base import Method as Method
    from equfl.models.base import Model as Model
    from equfl.runs.result import Run as Run
    from equfl.runs.run import resume as resume
    from equfl.runs.run import run as run
    from equfl.runs.watcher import Watcher as Watcher
    from equfl.simulation.engines.base import Engine as Engine
    from equfl.simulation.loop import simulate as simulate
    from equfl.synthesis.base import Synthesis as Synthesis
    from equfl.training.base import Training as Training

_HOMES = {
    "Aggregation": "aggregation.base",
    "Audit": "fairness.audit",
    "Cohort": "core.protocol",
    "Dataset": "data.base",
    "Engine": "simulation.engines.base",
    "EquflError": "core.errors",
    "Federation": "data.base",
    "Method": "methods.base",
    "Model": "models.base",
    "Notion": "fairness.base",
    "RoundContext": "core.protocol",
    "RoundRecord": "core.protocol",
    "Run": "runs.result",
    "RunConfig": "config.schema",
    "Samples": "core.samples",
    "Schema": "core.schema",
    "ServerState": "core.protocol",
    "Synthesis": "synthesis.base",
    "Training": "training.base",
    "Watcher": "runs.watcher",
    "audit": "fairness.audit",
    "federate_table": "data.table",
    "load_preset": "config.presets",
    "read_config": "config.files",
    "resume": "runs.run",
    "run": "runs.run",
    "simulate": "simulation.loop",
}
"""The same as above for the interpreter: public name -> the module that it lives in."""

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("equfl")
    if name not in _HOMES:
        raise AttributeError(f"module 'equfl' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"equfl.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
