"""What the tasks on the census' person files share: their fields, where the rows come from, how they are split."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from equfl.core.errors import ConfigError, DataError
from equfl.data import cache
from equfl.data._census_codebook import PARTIES
from equfl.data._census_extract import Extract
from equfl.data._census_files import find_person_file, person_file, read_persons
from equfl.data.base import Dataset, Federation, Progress
from equfl.data.encoding import Feature, Scaling
from equfl.data.federate import Split, Task, federate
from equfl.data.neighbourhood import with_neighbours
from equfl.data.partition import Rows, split_by_count


@dataclass(frozen=True)
class Census(Dataset):
    """A task on the American Community Survey of 2018, each state (and Puerto Rico) being a client.

    The rows come from the folder that ``EQUFL_DATA`` names, else from the cache, else from the Census Bureau.
    """

    sensitive: tuple[str, ...] = ("SEX",)
    """Between whose groups it should be fair; several columns mean their intersection."""
    parties: tuple[str, ...] = ()
    """Postal codes of the parties; none mean all 51."""
    scaling: Scaling = "schema"
    """'schema' leaves codes at 0 and 1 and standardises numbers per client; 'paper' standardises everything."""
    exclude_sensitive: bool = False
    """Keep the sensitive columns from the model."""
    train: int = 1000
    """Rows that each party trains on; one with fewer than ``train + 2 * test`` rows keeps the proportions."""
    test: int = 2000
    """Rows that each party is tested on."""
    seed: int = 0
    """Of the split."""

    features: ClassVar[tuple[Feature, ...]]
    """The inputs, in their order."""
    label: ClassVar[str]
    """The column that the label is made of."""
    classes: ClassVar[tuple[str, str]]
    also_read: ClassVar[tuple[str, ...]] = ()
    """Further columns that ``select`` looks at."""
    extract: ClassVar[Extract | None] = None
    """A table of this task's rows, taken instead of the person files if the user has it."""

    def __post_init__(self) -> None:
        coded = [feature.name for feature in self.features if feature.codes]
        _demand_some("sensitive", self.sensitive, coded)
        _demand(len(self.sensitive) > 0, "data.sensitive = []", f"at least one of {', '.join(coded)}")
        _demand_some("parties", self.parties, list(PARTIES))
        for name in ("train", "test"):
            _demand(getattr(self, name) >= 1, f"data.{name} = {getattr(self, name)}", "at least one row")

    @staticmethod
    @abstractmethod
    def select(persons: pa.Table) -> pa.Table:
        """The rows that the task is about."""

    @staticmethod
    @abstractmethod
    def positive(label: pa.ChunkedArray) -> pa.ChunkedArray:
        """Whether the label is 1, given the values of its column."""

    def load(self, *, progress: Progress = lambda task, done, total: None) -> Federation:
        extract, parties = self.extract, self.parties or tuple(PARTIES)
        if extract and (path := extract.find()):
            return cache.prepared(self, [path], lambda: self._from_extract(extract, path, parties, progress))
        files = {party: person_file(party, progress=progress) for party in parties}
        return cache.prepared(self, files.values(), lambda: self._from_person_files(files, progress))

    def whereabouts(self) -> str:
        if self.extract and (extract := self.extract.find()):
            return str(extract)
        parties = self.parties or tuple(PARTIES)
        found = [path for party in parties if (path := find_person_file(party))]
        here = [f"{len(found)} person files in {', '.join(sorted({str(path.parent) for path in found}))}"]
        how = "may not be downloaded (EQUFL_OFFLINE)" if cache.offline() else "are downloaded when needed"
        absent = [f"{len(parties) - len(found)} of {len(parties)} person files are not here and {how}"]
        return "; ".join(here * bool(found) + absent * (len(found) < len(parties)))

    def _from_extract(self, extract: Extract, path: Path, parties: tuple[str, ...], progress: Progress) -> Federation:
        progress(f"read {path.name}", 0, 1)
        tables = extract.read(path, [*(feature.name for feature in self.features), self.label])
        for party in parties:
            if party not in tables:
                raise DataError(f"{path} has no rows of {party}", wanted="all parties", remedy="Leave the party out")
        return self._federate(
            {party: tables[party] for party in parties},
            tuple(map(extract.means, self.features)),
            self._split,
            {"source": f"{SURVEY}, {path.name}", **extract.facts, "simulated": "no"},
            progress,
        )

    def _from_person_files(self, files: Mapping[str, Path], progress: Progress) -> Federation:
        columns = [*(feature.name for feature in self.features), self.label, *self.also_read]
        tables = {}
        for number, (party, path) in enumerate(files.items()):
            rows = self.select(read_persons(path, party, columns))
            label = pc.fill_null(self.positive(rows[self.label]), False)
            tables[party] = rows.set_column(rows.column_names.index(self.label), self.label, label)
            progress("read the person files", number + 1, len(files))
        facts = {"source": f"{SURVEY}, person files", "simulated": "no"}
        return self._federate(tables, self.features, self._split, facts, progress)

    def _split(self, party: str, rows: int) -> tuple[Rows, Rows]:
        return split_by_count(party, rows, train=self.train, test=self.test, seed=self.seed)

    def _federate(
        self,
        tables: Mapping[str, pa.Table],
        features: tuple[Feature, ...],
        split: Split,
        facts: Mapping[str, str],
        progress: Progress,
    ) -> Federation:
        unknown = {party: self._unknown(table, features) for party, table in tables.items()}
        left_out = "; ".join(f"{party}, where {reason}" for party, reason in unknown.items() if reason)
        kept = {party: table for party, table in tables.items() if not unknown[party]}
        if not kept:
            raise DataError(
                f"no party is left without {left_out}",
                wanted="parties whose sensitive attributes are known",
                remedy="Choose other parties or another sensitive column",
            )
        federation = federate(
            kept,
            Task(features, self.sensitive, self.label, self.classes, self.exclude_sensitive),
            name=self.name.replace("_", " "),
            split=split,
            scaling=self.scaling,
            facts={
                **facts,
                "licence": "public domain",
                **({"left out": left_out} if left_out else {}),
            },
            progress=progress,
        )
        return with_neighbours(federation, progress=progress)

    def _unknown(self, table: pa.Table, features: tuple[Feature, ...]) -> str:
        """Which sensitive attributes are unknown in how many rows, in words."""
        columns = [feature.name for feature in features if feature.name in self.sensitive and not feature.missing]
        counts = {column: table[column].null_count for column in columns}
        return " and ".join(
            f"{column} is unknown in {count} of {table.num_rows} rows" for column, count in counts.items() if count
        )


SURVEY = "American Community Survey 2018 of the U.S. Census Bureau"


def _demand(holds: bool, found: str, wanted: str) -> None:
    if not holds:
        raise ConfigError(found, wanted=wanted, remedy="'equfl describe' shows every field")


def _demand_some(name: str, given: tuple[str, ...], known: list[str]) -> None:
    once = len(set(given)) == len(given)
    _demand(once and set(given) <= set(known), f"data.{name} = {list(given)}", f"some of {', '.join(known)}, each once")
