"""Where the census' person files are: in the user's folder, in the cache, or at the Census Bureau."""

import zipfile
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pyarrow as pa

from equfl.core.errors import DataError, DataMissing
from equfl.data import cache
from equfl.data._census_codebook import PARTIES
from equfl.data.base import Progress
from equfl.data.download import fetch, intact

ADDRESS = "https://www2.census.gov/programs-surveys/acs/data/pums/2018/1-Year"
LAYOUT = Path("2018", "1-Year")
"""Where folktables puts the files, below a folder of one's choice."""


def person_file(party: str, *, progress: Progress = lambda task, done, total: None) -> Path:
    """The party's person file as the Census Bureau publishes it, a CSV or the zip around it; downloaded if need be."""
    there = find_person_file(party)
    if there:
        return there
    kept, url = _kept(party), f"{ADDRESS}/{_archive_name(party)}"
    if cache.offline():
        raise _missing(party, "and EQUFL_OFFLINE forbids to download it", url)
    try:
        fetch(url, kept, whole=lambda path: _holds(path, _table_name(party)), progress=progress)
    except OSError as error:
        raise _missing(party, f"and the download failed: {error}", url) from error
    return kept


def find_person_file(party: str) -> Path | None:
    """The party's person file, if it is here already: in the user's folder or in the cache."""
    given, kept = cache.data_folder(), _kept(party)
    folders = [given / below for below in (LAYOUT, "acs" / LAYOUT, "", "acs")] if given else []
    names = (_table_name(party), _archive_name(party))
    paths = (folder / name for folder in (*folders, kept.parent) for name in names)
    return next((path for path in paths if path.is_file()), None)


def read_persons(path: Path, party: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of a person file, all of them as numbers; what does not apply to a person is missing."""
    if not intact(path):
        raise _unusable(path, "is not what was downloaded", "Delete it, and it is downloaded again")
    from pyarrow import csv  # not needed by those who read prepared rows

    wanted = list(dict.fromkeys((*columns, "ST")))
    try:
        with ExitStack() as stack:
            source: IO[bytes] = stack.enter_context(path.open("rb"))
            if path.suffix == ".zip":
                archive = stack.enter_context(zipfile.ZipFile(source))
                source = stack.enter_context(archive.open(_table_name(party)))
            persons = csv.read_csv(
                source,
                convert_options=csv.ConvertOptions(
                    include_columns=wanted,
                    column_types=dict.fromkeys(wanted, pa.int32()),
                    null_values=["", " ", "b"],
                ),
            )
    except (pa.ArrowException, KeyError, zipfile.BadZipFile, zlib.error, OSError) as error:
        reason = " ".join(str(error).split())
        raise _unusable(path, f"cannot be read ({reason})", f"Get it again: {ADDRESS}/{_archive_name(party)}") from None
    if not persons.num_rows:
        raise _unusable(path, "has no rows", f"Get it again, or leave {party} out with data.parties")
    if set(persons["ST"].unique().to_pylist()) != {PARTIES[party]}:
        raise _unusable(path, f"holds other rows than those of {party}", "Give the file its own name back")
    return persons


def _holds(path: Path, name: str) -> bool:
    """Whether the file is a whole zip archive with a file of that name in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return name in archive.namelist() and archive.testzip() is None
    except (zipfile.BadZipFile, zlib.error, EOFError):
        return False


def _kept(party: str) -> Path:
    return cache.folder() / "census" / LAYOUT / _archive_name(party)


def _table_name(party: str) -> str:
    return f"psam_p{PARTIES[party]:02d}.csv"


def _archive_name(party: str) -> str:
    return f"csv_p{party.lower()}.zip"


def _missing(party: str, reason: str, url: str) -> DataMissing:
    return DataMissing(
        f"{_table_name(party)}, the census' person file of {party}, is neither in the folder that EQUFL_DATA names nor"
        f" in {cache.folder()}, {reason}",
        wanted="the 1-year person file of 2018",
        remedy=f"Download {url}, put it into a folder FOLDER/{LAYOUT.as_posix()} and set EQUFL_DATA=FOLDER",
    )


def _unusable(path: Path, reason: str, remedy: str) -> DataError:
    return DataError(f"{path} {reason}", wanted="a 1-year person file of 2018", remedy=remedy)
