"""Downloads, against a server on this machine that misbehaves as told."""

import hashlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from equfl.data.download import fetch, intact

BODY = bytes(range(256)) * 3000


class Server(HTTPServer):
    """Answers one request after another as the script says; the last answer is repeated."""

    def __init__(self, script: list[str]) -> None:
        self.script = script
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/file.zip"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        answer = self.server.script[min(len(self.server.asked), len(self.server.script) - 1)]
        self.server.asked.append(self.path)
        if answer.isdigit():
            self.send_error(int(answer))
        elif answer == "silence":
            time.sleep(0.4)
        elif answer == "garbage":
            self.wfile.write(b"no answer of HTTP\r\n\r\n")
        else:
            self.send_response(200)
            if answer != "no length":
                self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY[: len(BODY) // 2] if answer == "half" else BODY)

    def log_message(self, *what: object) -> None:
        pass


@pytest.fixture
def serve() -> Iterator:
    running = []

    def start(*script: str) -> Server:
        server = Server(list(script))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        running.append((server, thread))
        return server

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


def only(path) -> None:
    """That nothing but the file and its checksum is in the folder."""
    assert sorted(other.name for other in path.parent.iterdir()) == [path.name, f"{path.name}.sha256"]


def test_the_file_arrives_with_its_checksum_beside_it(serve, tmp_path):
    server, path = serve("whole"), tmp_path / "deep" / "file.zip"
    fetch(server.url, path)
    assert path.read_bytes() == BODY
    assert (tmp_path / "deep/file.zip.sha256").read_text() == f"{hashlib.sha256(BODY).hexdigest()}  file.zip\n"
    assert intact(path)
    only(path)


def test_progress_tells_how_much_of_how_much_has_arrived(serve, tmp_path):
    told = []
    fetch(serve("whole").url, tmp_path / "file.zip", progress=lambda *what: told.append(what))
    assert told[-1] == ("download file.zip", len(BODY), len(BODY))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert len(told) > 1


def test_a_server_that_tells_no_length_is_believed(serve, tmp_path):
    told = []
    fetch(serve("no length").url, tmp_path / "file.zip", progress=lambda *what: told.append(what))
    assert (tmp_path / "file.zip").read_bytes() == BODY
    assert told[-1] == ("download file.zip", len(BODY), 0)


@pytest.mark.parametrize("failure", ["500", "503", "429", "half", "garbage"])
def test_what_may_pass_is_asked_for_again(serve, tmp_path, failure):
    server = serve(failure, failure, "whole")
    fetch(server.url, tmp_path / "file.zip", wait=0.001)
    assert len(server.asked) == 3
    assert (tmp_path / "file.zip").read_bytes() == BODY
    only(tmp_path / "file.zip")


@pytest.mark.parametrize(
    ("failure", "told"), [("503", "answered 503"), ("half", "no whole file"), ("garbage", "no whole file")]
)
def test_after_some_tries_nothing_is_left_but_the_reason(serve, tmp_path, failure, told):
    server = serve(failure)
    with pytest.raises(OSError, match=told):
        fetch(server.url, tmp_path / "file.zip", tries=3, wait=0.001)
    assert len(server.asked) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", ["404", "403", "410"])
def test_what_will_not_pass_is_asked_for_once(serve, tmp_path, status):
    server = serve(status)
    with pytest.raises(OSError, match=f"{server.url} answered {status}"):
        fetch(server.url, tmp_path / "file.zip")
    assert len(server.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_says_nothing_is_given_up(serve, tmp_path):
    with pytest.raises(OSError, match="no whole file"):
        fetch(serve("silence").url, tmp_path / "file.zip", tries=1, timeout=0.1)
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_nobody_answers_is_an_error_that_names_it(tmp_path):
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as unused:
        port = unused.server_port
    with pytest.raises(OSError, match=f"http://127.0.0.1:{port}/file.zip gave no whole file"):
        fetch(f"http://127.0.0.1:{port}/file.zip", tmp_path / "file.zip", tries=2, wait=0.001)


def test_the_waits_double(serve, tmp_path, monkeypatch):
    waits = []
    monkeypatch.setattr("equfl.data.download.time.sleep", waits.append)
    with pytest.raises(OSError, match="503"):
        fetch(serve("503").url, tmp_path / "file.zip", wait=1.0)
    assert waits == [1.0, 2.0, 4.0]


def test_what_the_caller_finds_broken_is_thrown_away_and_asked_for_again(serve, tmp_path):
    verdicts = iter([False, True])
    server = serve("whole")
    fetch(server.url, tmp_path / "file.zip", whole=lambda path: next(verdicts), wait=0.001)
    assert len(server.asked) == 2
    only(tmp_path / "file.zip")


def test_a_failed_download_leaves_the_file_that_was_there(serve, tmp_path):
    path = tmp_path / "file.zip"
    path.write_text("old")
    with pytest.raises(OSError, match="answered 404"):
        fetch(serve("404").url, path)
    assert path.read_text() == "old"


def test_a_changed_file_is_not_intact_and_one_without_checksum_is_taken_as_it_is(serve, tmp_path):
    path = tmp_path / "file.zip"
    fetch(serve("whole").url, path)
    path.write_bytes(BODY[:-1])
    assert not intact(path)
    (tmp_path / "file.zip.sha256").unlink()
    assert intact(path)


def test_an_empty_checksum_file_vouches_for_nothing(tmp_path):
    (tmp_path / "file").write_text("rows")
    (tmp_path / "file.sha256").write_text("")
    assert not intact(tmp_path / "file")


def test_an_interrupted_download_leaves_nothing(serve, tmp_path):
    def interrupt(task: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(serve("whole").url, tmp_path / "file.zip", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_the_users_to_know_at_once(serve, tmp_path):
    (tmp_path / "folder").write_text("a file")
    server = serve("whole")
    with pytest.raises(OSError, match="folder"):
        fetch(server.url, tmp_path / "folder" / "file.zip")
    assert server.asked == []
