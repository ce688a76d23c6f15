"""The public surface is a short list, and what it costs to look at it is next to nothing."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import equfl

HEAVY = {"torch", "numpy", "pyarrow", "scipy", "pandas", "rich", "tyro", "flwr"}


@pytest.mark.parametrize("name", equfl.__all__)
def test_every_public_name_can_be_used(name):
    assert getattr(equfl, name).__name__ == name
    assert inspect.getdoc(getattr(equfl, name))


def test_the_names_that_type_checkers_see_are_the_ones_that_can_be_used():
    (checking,) = [node for node in ast.parse(Path(equfl.__file__).read_text()).body if isinstance(node, ast.If)]
    seen = {alias.name: node.module for node in checking.body for alias in node.names}
    assert seen == {name: getattr(equfl, name).__module__ for name in equfl.__all__}


def test_the_list_is_short_and_complete():
    assert len(equfl.__all__) <= 30
    assert set(dir(equfl)) == {*equfl.__all__, "__version__"}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'equfl' has no attribute 'rum'"):
        _ = equfl.rum


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, equfl; print({HEAVY} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
