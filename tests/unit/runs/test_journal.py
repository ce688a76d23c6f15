import json
from dataclasses import replace
from math import inf, isnan, nan

import pytest

from equfl.core.protocol import RoundRecord
from equfl.runs.journal import Journal, Mark, read_records, write_records

RECORDS = [
    RoundRecord(number, 3, {"accuracy": 0.1 * number}, {"ratio": inf, "cosine": -inf}, {"clients": 0.25})
    for number in range(1, 5)
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rounds.jsonl"


def filled(path, records=RECORDS):
    journal = Journal(path)
    marks = [journal.mark]
    for record in records:
        journal.append(record)
        marks.append(journal.mark)
    journal.close()
    return marks


def test_records_are_read_as_they_were_written_infinities_and_all(path):
    filled(path)
    assert read_records(path) == tuple(RECORDS)
    assert read_records(path)[0].seconds == RECORDS[0].seconds


def test_what_cannot_be_said_comes_back_as_nan_and_every_line_is_strict_json(path):
    filled(path, [replace(RECORDS[0], evaluation={"consistency/pooled": nan})])
    json.loads(path.read_text(), parse_constant=pytest.fail)
    assert isnan(read_records(path)[0].evaluation["consistency/pooled"])


def test_a_journal_is_cut_back_to_its_mark(path):
    marks = filled(path)
    Journal.at(path, marks[2]).close()
    assert read_records(path) == tuple(RECORDS[:2])


def test_half_a_line_behind_the_mark_does_no_harm(path):
    marks = filled(path)
    path.write_bytes(path.read_bytes() + b'{"round": 5, "partic')
    journal = Journal.at(path, marks[-1])
    journal.append(replace(RECORDS[0], round=5))
    journal.close()
    assert [record.round for record in read_records(path)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-1], lambda text: text.replace(b"0.25", b"0.26", 1), lambda text: b""]
)
def test_a_journal_that_reads_otherwise_than_at_its_mark_is_not_gone_on_with(path, damage):
    mark = filled(path)[-1]
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    assert Journal.at(path, mark) is None
    assert path.read_bytes() == damaged, "and it is left as it was found"


def test_an_empty_journal_matches_the_empty_mark(path):
    Journal.at(path, Mark()).close()
    assert path.read_bytes() == b""


def test_a_journal_written_at_once_has_the_mark_of_one_written_line_by_line(path, tmp_path):
    assert write_records(tmp_path / "at_once.jsonl", RECORDS) == filled(path)[-1]
