"""What the tests of the Flower room share; without Flower there is nothing to test."""

import os

import pytest

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
pytest.importorskip("flwr", reason="flwr is not installed: pip install 'equfl[flower]'")
