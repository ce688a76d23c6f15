"""Everything that equfl raises on purpose.

    EquflError
    ├── ConfigError          a setting is unknown, of the wrong type or out of range
    ├── ComponentError       no such rule, method, notion, model, data set or engine
    ├── DataError            a table or a file cannot be used as it is
    │   └── DataMissing      it is at none of the places where it could be
    ├── CohortError          the updates of a round cannot be aggregated
    ├── CalibrationError     the server cannot synthesise or calibrate with what it has
    └── RunError             a run folder cannot be written, read or resumed
        └── Damaged          a file in it is truncated or was altered

Every message has three parts: what was found, what was wanted, what to do. The command line prints it as one line
and ends with exit code 2.
"""


class EquflError(Exception):
    """Base of the tree. ``found``, ``wanted`` and ``remedy`` are whole phrases without a final full stop."""

    def __init__(self, found: str, *, wanted: str, remedy: str) -> None:
        super().__init__(found, wanted, remedy)
        self.found = found
        self.wanted = wanted
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.found}; wanted {self.wanted}. {self.remedy}."

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default protocol, and errors cross process borders.
        return _rebuild, (type(self), self.found, self.wanted, self.remedy)


def _rebuild(kind: type[EquflError], found: str, wanted: str, remedy: str) -> EquflError:
    return kind(found, wanted=wanted, remedy=remedy)


class ConfigError(EquflError):
    """A setting is unknown, of the wrong type or out of range."""


class ComponentError(EquflError):
    """No component of that kind has that name."""


class DataError(EquflError):
    """A table or a file cannot be used as it is."""


class DataMissing(DataError):
    """The data is at none of the places where it could be."""


class CohortError(EquflError):
    """The updates of a round cannot be aggregated."""


class CalibrationError(EquflError):
    """The server cannot synthesise or calibrate with what it has."""


class RunError(EquflError):
    """A run folder cannot be written, read or resumed."""


class Damaged(RunError):
    """A file of a run is truncated or was altered."""
