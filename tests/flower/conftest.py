"""What the tests of the Flower room share; without Flower there is nothing to test."""

import os
from types import SimpleNamespace

import pytest

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
pytest.importorskip("flwr", reason="flwr is not installed: pip install 'equfl[flower]'")


@pytest.fixture(autouse=True)
def _no_collecting(monkeypatch):
    """Some strategies collect garbage once per client and round, which takes seconds where a test suite is loaded."""
    monkeypatch.setattr("flwr.app.message.arrayrecord.gc", SimpleNamespace(collect=lambda: 0))
