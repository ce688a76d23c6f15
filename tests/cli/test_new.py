"""A new project comes out of the template, and the example in the repository is one."""

from pathlib import Path

import pytest

from equfl.cli import main
from equfl.cli.new import rendered

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-census"


def files(folder: Path) -> dict[str, str]:
    """What a folder holds, but for what Python leaves behind."""
    found = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in found}


def test_the_example_is_what_the_command_makes(tmp_path):
    assert main(["new", "flower", str(tmp_path / "flower-census")]) == 0
    assert files(tmp_path / "flower-census") == files(EXAMPLE)


def test_a_project_has_its_folders_name_throughout(tmp_path, capsys):
    assert main(["new", "flower", str(tmp_path / "My-Clinic")]) == 0
    made = files(tmp_path / "My-Clinic")
    assert 'serverapp = "my_clinic.server_app:app"' in made["pyproject.toml"]
    assert not any("census" in name for name in made)
    assert "flower_census" not in "".join(made.values())
    assert "task.py" in capsys.readouterr().out


def test_every_module_of_a_project_is_python():
    for name, text in rendered("flower", "clinic").items():
        if name.endswith(".py"):
            compile(text, name, "exec")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["flwr", "x"], "no template is called 'flwr'; wanted flower"),
        (["flower", "3 x"], "a folder called '3 x'; wanted letters"),
        (["flower", "full"], "full is not empty; wanted a new folder"),
    ],
)
def test_what_cannot_be_made_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, words, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    assert main(["new", *words]) == 2
    assert complaint in capsys.readouterr().err
