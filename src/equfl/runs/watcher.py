"""Who looks on while a run is computed: a progress bar, a log, a tracker."""

from equfl.config.schema import RunConfig
from equfl.core.protocol import RoundRecord
from equfl.data.base import Federation


class Watcher:
    """Told what happens, and asked nothing. Override what is of interest; as it is, it keeps quiet."""

    def working(self, task: str, done: int, total: int) -> None:
        """Long work is going on: what, how far it is, how far it goes."""

    def loaded(self, federation: Federation) -> None:
        """The data is there."""

    def round(self, config: RunConfig, record: RoundRecord) -> None:
        """A round is done and safe. The config is the run's own or, for the comparison, FedAvg's."""
