"""What the columns of the inputs mean, so that the server knows what a valid row looks like."""

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Column:
    """One column of the original table and the inputs it occupies.

    A numeric column occupies one input. A categorical one occupies one input per code; the input of the row's own code
    is ``on``, the others are ``off`` (1 and 0 unless the inputs were standardised).
    """

    name: str
    start: int
    codes: tuple[str, ...] = ()
    """The codes of a categorical column, in the order of the inputs; empty for a numeric column."""
    off: tuple[float, ...] = ()
    on: tuple[float, ...] = ()

    @property
    def numeric(self) -> bool:
        return not self.codes

    @property
    def stop(self) -> int:
        return self.start + max(1, len(self.codes))


@dataclass(frozen=True)
class Schema:
    """Shape of the inputs, names of labels and groups, and where in the inputs the sensitive attribute sits."""

    shape: tuple[int, ...]
    """Shape of one row's inputs: ``(54,)`` for census rows, ``(1, 28, 28)`` for digits."""
    classes: tuple[str, ...]
    groups: tuple[str, ...]
    sensitive: tuple[str, ...]
    """The columns that make the groups; several mean their intersection."""
    columns: tuple[Column, ...] = ()
    """In the order of the inputs; empty where the inputs are not a table."""
    group_codes: tuple[tuple[int, ...], ...] = ()
    """Per group, the inputs that are on for its members; empty where the model does not see the attribute."""

    @cached_property
    def sensitive_inputs(self) -> tuple[int, ...]:
        """Every input of the sensitive columns, so far as the model sees them."""
        return tuple(
            position
            for column in self.columns
            if column.name in self.sensitive
            for position in range(column.start, column.stop)
        )

    @cached_property
    def codes_off(self) -> tuple[float, ...]:
        """Per input, its value when the code is absent; 0 for numeric columns."""
        return tuple(value for c in self.columns for value in (c.off or (0.0,) * (c.stop - c.start)))

    @cached_property
    def codes_on(self) -> tuple[float, ...]:
        """Per input, its value when the code is present; 1 for numeric columns."""
        return tuple(value for c in self.columns for value in (c.on or (1.0,) * (c.stop - c.start)))
