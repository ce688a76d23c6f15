"""A table made from all person files for one task: its rows are selected and its label is decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from equfl.core.errors import DataError
from equfl.data import cache
from equfl.data.encoding import Feature
from equfl.data.partition import by_party


@dataclass(frozen=True)
class Extract:
    """Where the table is, and how it differs from the person files."""

    place: str
    """The file, below the folder that ``EQUFL_DATA`` names."""
    party: str
    """The column with the parties' postal codes."""
    unknown: Mapping[str, int] = field(default_factory=dict)
    """Per column, the code that stands for an unknown one."""
    meanings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Per column, the codes that mean something else than in the person files."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """The differences for people."""

    def find(self) -> Path | None:
        """The file, if it is there."""
        folder = cache.data_folder()
        path = folder / self.place if folder else None
        return path if path and path.is_file() else None

    def read(self, path: Path, columns: Sequence[str]) -> dict[str, pa.Table]:
        """The rows of each party; unknown codes are missing values."""
        from pyarrow import parquet  # not needed by those who read prepared rows

        try:
            table = parquet.read_table(path, columns=[self.party, *columns])
            missing = {self.party, *columns} - set(table.column_names)
            if missing:
                raise KeyError(f"it has no column {', '.join(sorted(missing))}")
        except (pa.ArrowException, KeyError, OSError) as error:
            raise DataError(
                f"{path} cannot be read ({' '.join(str(error).split())})",
                wanted="the extract that the data's documentation describes",
                remedy="Get the file again, or take it away to use the census' person files",
            ) from None
        return by_party(self.known(table), self.party)

    def known(self, table: pa.Table) -> pa.Table:
        """The rows with missing values for unknown codes."""
        for column, code in self.unknown.items():
            known = pc.if_else(pc.equal(table[column], code), None, table[column])
            table = table.set_column(table.column_names.index(column), column, known)
        return table

    def means(self, feature: Feature) -> Feature:
        """The feature, with what its codes mean here."""
        here = self.meanings.get(feature.name, {})
        pairs = zip(feature.code_names, feature.meanings, strict=True)
        return replace(feature, meanings=tuple(here.get(code, meaning) for code, meaning in pairs))
