"""Person files: where they are looked for, in which order, and what is read in them."""

import functools
import hashlib
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from equfl.core.errors import DataError, DataMissing
from equfl.data import _census_files, cache
from equfl.data._census_codebook import PARTIES
from equfl.data._census_files import LAYOUT, person_file, read_persons


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *what: object) -> None:
        self.server.asked.append(self.path)


@pytest.fixture
def bureau(tmp_path, monkeypatch) -> Iterator[tuple[Path, list[str]]]:
    """A folder that is on the web in place of the Census Bureau's, and the requests made of it."""
    (tmp_path / "bureau").mkdir()
    handler = functools.partial(Quiet, directory=str(tmp_path / "bureau"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setattr(_census_files, "ADDRESS", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setattr("equfl.data.download.time.sleep", lambda seconds: None)
        monkeypatch.delenv("EQUFL_OFFLINE")
        yield tmp_path / "bureau", server.asked
        server.shutdown()
        thread.join()


@pytest.fixture
def own_folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("EQUFL_DATA", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


@pytest.mark.parametrize("below", ["2018/1-Year", "acs/2018/1-Year", "", "acs"])
@pytest.mark.parametrize("zipped", [False, True])
def test_a_file_in_the_users_folder_is_found_wherever_it_may_lie(own_folder, write_persons, below, zipped):
    given = write_persons(own_folder / below, "VT", zipped=zipped)
    assert person_file("VT") == given
    assert given.name == ("csv_pvt.zip" if zipped else "psam_p50.csv")


def test_the_users_folder_comes_before_the_cache_and_the_cache_before_a_download(
    own_folder, write_persons, bureau, monkeypatch
):
    folder, asked = bureau
    write_persons(folder, "VT", zipped=True)
    kept = write_persons(cache.folder() / "census" / LAYOUT, "VT", zipped=True)
    own = write_persons(own_folder / LAYOUT, "VT")
    assert person_file("VT") == own
    own.unlink()
    assert person_file("VT") == kept
    assert asked == []
    kept.unlink()
    assert person_file("VT") == kept
    assert asked == ["/csv_pvt.zip"]


def test_a_download_is_kept_with_its_checksum_and_not_asked_for_again(write_persons, bureau):
    folder, asked = bureau
    sent = write_persons(folder, "PR", zipped=True).read_bytes()
    told = []
    path = person_file("PR", progress=lambda *what: told.append(what))
    assert path.read_bytes() == sent
    assert hashlib.sha256(sent).hexdigest() in path.with_name("csv_ppr.zip.sha256").read_text()
    assert told[-1] == ("download csv_ppr.zip", len(sent), len(sent))
    assert person_file("PR") == path
    assert asked == ["/csv_ppr.zip"]


def test_an_answer_that_is_no_archive_of_that_party_is_no_file(write_persons, bureau):
    folder, asked = bureau
    (folder / "csv_pvt.zip").write_text("<html>Sorry, we are moving</html>")
    with pytest.raises(DataMissing, match=r"the download failed: .* gave no whole file"):
        person_file("VT")
    assert len(asked) == 4
    write_persons(folder, "ME", zipped=True).rename(folder / "csv_pvt.zip")
    with pytest.raises(DataMissing, match="the download failed"):
        person_file("VT")
    assert list((cache.folder() / "census" / LAYOUT).iterdir()) == []


def test_what_can_be_had_nowhere_is_named_with_where_to_get_it_and_where_to_put_it(bureau):
    with pytest.raises(DataMissing) as caught:
        person_file("VT")
    message = str(caught.value)
    assert "psam_p50.csv, the census' person file of VT" in message
    assert "answered 404" in message
    assert f"Download {_census_files.ADDRESS}/csv_pvt.zip" in message
    assert "put it into a folder FOLDER/2018/1-Year and set EQUFL_DATA=FOLDER" in message
    assert "\n" not in message


def test_offline_nothing_is_asked_for(bureau, monkeypatch):
    _, asked = bureau
    monkeypatch.setenv("EQUFL_OFFLINE", "1")
    with pytest.raises(DataMissing, match="EQUFL_OFFLINE forbids to download it"):
        person_file("VT")
    assert asked == []


def test_the_address_is_that_of_the_1_year_files_of_2018():
    assert _census_files.ADDRESS == "https://www2.census.gov/programs-surveys/acs/data/pums/2018/1-Year"


@pytest.mark.parametrize("zipped", [False, True])
def test_columns_are_whole_numbers_whatever_their_zeros_and_missing_where_nothing_stands(
    tmp_path, write_persons, zipped
):
    path = write_persons(
        tmp_path,
        "AL",
        zipped=zipped,
        rows=[{"OCCP": "0010", "PINCP": "-00900"}, {"OCCP": "", "PINCP": " "}, {"OCCP": "9800", "PINCP": "b"}],
    )
    persons = read_persons(path, "AL", ["OCCP", "PINCP"])
    assert persons["OCCP"].to_pylist() == [10, None, 9800]
    assert persons["PINCP"].to_pylist() == [-900, None, None]
    assert persons["ST"].to_pylist() == [1, 1, 1]


def test_the_state_may_be_asked_for_too(tmp_path, write_persons):
    assert read_persons(write_persons(tmp_path, "AL"), "AL", ["ST", "SEX"]).column_names == ["ST", "SEX"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Empty CSV"),
        (b"ST,SEX\n01,1\n01\n", "columns"),
        (b"ST,SEX\n01,female\n", "female"),
        (b"ST,AGEP\n01,30\n", "SEX"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path, content, reason):
    path = tmp_path / "psam_p01.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"psam_p01\.csv cannot be read .*{reason}.*Get it again: https") as caught:
        read_persons(path, "AL", ["SEX"])
    assert "\n" not in str(caught.value)


def test_half_an_archive_is_named(tmp_path, write_persons):
    path = write_persons(tmp_path, "AL", zipped=True)
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(DataError, match=r"csv_pal\.zip cannot be read"):
        read_persons(path, "AL", ["SEX"])


def test_an_archive_without_the_file_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "csv_pal.zip", "w") as archive:
        archive.writestr("psam_p02.csv", "ST,SEX\n")
    with pytest.raises(DataError, match=r"csv_pal\.zip cannot be read .*psam_p01"):
        read_persons(tmp_path / "csv_pal.zip", "AL", ["SEX"])


def test_a_download_that_was_changed_since_is_not_read(tmp_path, write_persons):
    path = write_persons(tmp_path, "AL", zipped=True)
    path.with_name("csv_pal.zip.sha256").write_text(f"{'0' * 64}  csv_pal.zip\n")
    with pytest.raises(DataError, match=r"is not what was downloaded.*Delete it, and it is downloaded again"):
        read_persons(path, "AL", ["SEX"])


def test_a_file_under_another_states_name_is_found_out(tmp_path, write_persons):
    write_persons(tmp_path, "AK").rename(tmp_path / "psam_p01.csv")
    with pytest.raises(DataError, match="holds other rows than those of AL"):
        read_persons(tmp_path / "psam_p01.csv", "AL", ["SEX"])


def test_there_are_50_states_and_puerto_rico_and_no_capital():
    assert len(PARTIES) == 51
    assert PARTIES["PR"] == 72
    assert 11 not in PARTIES.values()
    assert sorted(set(PARTIES.values()) - {72}) == [n for n in range(1, 57) if n not in (3, 7, 11, 14, 43, 52)]
