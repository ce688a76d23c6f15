"""The benchmark of the engines runs, on a job so small that its figures say nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_it_prints_one_table_of_all_contenders_and_one_of_growing_federations():
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak of memory is only told by Linux")
    words = ["-m", "benchmarks.engines", "--cycles", "2", "--threads", "1", "--rows", "70", "--most", "51"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    for contender in ("loop", "rung vmap", "rung packed", "floor"):
        assert len(re.findall(rf"^│.*\b{contender}\b", text, re.MULTILINE)) == 1
    rows = re.findall(r"^│ (\d+) +│ [\d.]+ +│ -?\d+ +│ (\d+) ", text, re.MULTILINE)
    assert rows == [("51", "256"), ("51", "64")]
