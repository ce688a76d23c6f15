"""The command line as a whole: its help, and what happens to words that it does not know."""

import subprocess
import sys

import pytest

from equfl.cli import COMMANDS, main


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_names_every_command(capsys, words):
    assert main(words) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {command} " in text for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(capsys, command):
    assert main([command, "--help"]) == 0
    assert f"usage: equfl {command}" in capsys.readouterr().out


def test_the_version_is_what_an_issue_needs(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("equfl 0.")


def test_an_unknown_command_names_the_nearest(capsys):
    assert main(["descrbe"]) == 2
    assert "Did you mean 'equfl describe'" in the_complaint(capsys)


def test_a_word_too_many_is_named(capsys):
    assert main(["describe", "method", "equfl", "again"]) == 2
    assert "one word too many: 'again'" in the_complaint(capsys)


def test_a_complaint_stays_on_one_line_and_harmless_whatever_was_typed(capsys):
    assert main(["describe", "two\nlines \x1b[31m"]) == 2
    assert "\x1b" not in the_complaint(capsys)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_loads_neither_torch_nor_arrow(command):
    words = [command, "--help"] if command else ["--help"]
    heavy = "{'torch', 'pyarrow', 'numpy'} & {*sys.modules}"
    check = f"import sys; from equfl.cli import main; main({words}); print({heavy})"
    finished = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines()[-1] == "set()"


def test_a_reader_who_leaves_early_is_no_error():
    with subprocess.Popen([*ENTRY, "describe"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_terminal_without_unicode_gets_the_formulas_in_letters(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    finished = subprocess.run([*ENTRY, "describe", "equfl"], capture_output=True, text=True, check=True)
    assert "eta (gamma g_0" in finished.stdout
    assert finished.stderr == ""


def test_a_full_disk_behind_the_output_is_one_line_and_exit_code_2():
    try:
        full = open("/dev/full", "w")  # noqa: SIM115
    except OSError:
        pytest.skip("this system has no /dev/full")
    with full:
        finished = subprocess.run([*ENTRY, "describe"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert finished.returncode == 2
    assert finished.stderr.splitlines()[0].startswith("equfl: No space left on device")


ENTRY = [sys.executable, "-c", "import sys; from equfl.cli import main; sys.exit(main())"]


def the_complaint(capsys: pytest.CaptureFixture[str]) -> str:
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("equfl: ")
    assert streams.err.count("\n") == 1
    return streams.err
