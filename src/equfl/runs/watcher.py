"""Who looks on while a run is computed: a progress bar, a log, a tracker."""

from equfl.config.schema import RunConfig
from equfl.core.protocol import RoundRecord


class Watcher:
    """Told what happens, and asked nothing. Override what is of interest; as it is, it keeps quiet."""

    def working(self, task: str, done: int, total: int) -> None:
        """Long work is going on: what, how far it is, how far it goes."""

    def round(self, config: RunConfig, record: RoundRecord) -> None:
        """A round is done and safe. The config is the run's own or, for the comparison, FedAvg's."""
