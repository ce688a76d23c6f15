"""The benchmark of the rules and the paper's table of them run, on jobs so small that their figures say nothing."""

import re
import subprocess
import sys
from pathlib import Path

from equfl.aggregation.base import Aggregation
from equfl.core.component import known

ROOT = Path(__file__).parents[2]


def said(*words: str | Path) -> str:
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_rule_is_timed_and_three_are_compared_with_what_one_would_write_first():
    text = said("-m", "benchmarks.rules", "--clients", "8", "--cycles", "1", "--threads", "1")
    for rule in known(Aggregation):
        assert len(re.findall(rf"^│ {rule} +│ [\d.]+ +[\d.]+ +│", text, re.MULTILINE)) == 1
    assert len(re.findall(r"^│ (?:median|trimmed_mean|multi_krum) +│[^│]+│ [\d.]+ +│$", text, re.MULTILINE)) == 3


def test_the_table_on_rules_has_accuracy_and_every_notion_in_every_row(tmp_path):
    words = ["--rules", "mean", "multi_krum", "--methods", "fedavg", "--targets", "EO", "--seeds", "2"]
    toy = [word for setting in ("data.name=toy", "data.clients=6", "rounds=20") for word in ("--set", setting)]
    text = said("scripts/rules-table", "quickstart", *words, *toy, "--processes", "1", "--out", tmp_path)
    number, nothing = r"\d+\.\d+ ± \d+\.\d+", "–"  # the toy data has no neighbours for consistency
    for rule, left_out in (("mean", "0.0"), ("multi_krum", "1.0")):
        assert re.search(rf"^\| {rule} alone \| (?:{number} \| ){{4}}{nothing} \| {left_out} \|$", text, re.MULTILINE)
        assert re.search(
            rf"^\| {rule} \+ fedavg for EO \| {number} \| \*\*{number}\*\* \(\+0\.0 %\) \|", text, re.MULTILINE
        )
    assert "multi_krum, seed 0: rows behind the updates that were taken: woman" in text
    assert len(list(tmp_path.iterdir())) == 4
