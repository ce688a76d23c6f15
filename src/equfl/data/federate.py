"""From the parties' tables to a federation; pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Int
from torch import Tensor

from equfl.core.errors import DataError
from equfl.core.samples import Samples, concatenate
from equfl.core.schema import Schema
from equfl.data.base import Federation, Grouping, Progress
from equfl.data.encoding import Feature, Scaling, columns, encode, numbers, positions
from equfl.data.partition import Rows

Split = Callable[[str, int], tuple[Rows, Rows]]
"""Party and its number of rows -> rows to train on, rows to test on."""


@dataclass(frozen=True)
class Task:
    """What is predicted from what, and between whom it should be fair."""

    features: tuple[Feature, ...]
    sensitive: tuple[str, ...]
    """Categorical features that make the groups; several mean their intersection."""
    label: str
    """A column of 0 and 1."""
    classes: tuple[str, str]
    """What 0 and 1 mean."""
    exclude_sensitive: bool = False
    """Whether the model is kept from seeing the sensitive columns."""

    @property
    def inputs(self) -> tuple[Feature, ...]:
        """The features that the model sees."""
        return tuple(
            feature for feature in self.features if not (self.exclude_sensitive and feature.name in self.sensitive)
        )


def federate(
    parties: Mapping[str, pa.Table],
    task: Task,
    *,
    name: str,
    split: Split,
    scaling: Scaling = "schema",
    facts: Mapping[str, str] | None = None,
    progress: Progress = lambda task, done, total: None,
) -> Federation:
    """Encode each party's rows, standardised over all of them, and split them into train and test.

    The groups are those that occur among all rows, so they do not depend on the split.
    """
    sensitive = [feature for wanted in task.sensitive for feature in task.features if feature.name == wanted]
    divisions = {feature.name: _divide(parties, [feature]) for feature in sensitive}
    division = _divide(parties, sensitive)
    _check_labels(parties, task)

    train, test, encoded, tested = [], [], [], []
    for number, (party, table) in enumerate(parties.items()):
        train_rows, test_rows = split(party, table.num_rows)
        if len(train_rows) == 0 or len(test_rows) == 0:
            raise DataError(
                f"{party} has {table.num_rows} rows, of which {len(train_rows)} train and {len(test_rows)} test",
                wanted="at least one of each for every client",
                remedy="Leave the client out or take more of its rows",
            )
        client = encode(table, task.inputs, scaling)
        labels = numbers(table[task.label]).long()
        samples = Samples(client.inputs, labels, division.groups[party], group_count=len(division.names))
        train.append(samples.rows(train_rows))
        test.append(samples.rows(test_rows))
        tested.append((party, test_rows))
        # The rows that are kept out must not stay in memory, so no view of them is kept.
        encoded.append(replace(client, inputs=torch.empty(0, client.inputs.shape[1])))
        progress("encode the rows", number + 1, len(parties))

    schema_columns = columns(task.inputs, encoded)
    starts = {column.name: column.start for column in schema_columns}
    seen = all(feature.name in starts for feature in sensitive)
    return Federation(
        name=name,
        clients=tuple(parties),
        train=concatenate(train),
        test=concatenate(test),
        schema=Schema(
            shape=(schema_columns[-1].stop,),
            classes=task.classes,
            groups=division.names,
            sensitive=task.sensitive,
            columns=schema_columns,
            group_codes=tuple(
                tuple(starts[feature.name] + code for feature, code in zip(sensitive, codes, strict=True))
                for codes in division.codes
            )
            if seen
            else (),
        ),
        groupings={
            column: Grouping(alone.names, torch.cat([alone.groups[party][rows] for party, rows in tested]))
            for column, alone in divisions.items()
            if len(divisions) > 1
        },
        facts=facts or {},
    )


@dataclass(frozen=True)
class _Division:
    """The groups that some sensitive columns make."""

    names: tuple[str, ...]
    codes: tuple[tuple[int, ...], ...]
    """Per group, the position of its code in each column."""
    groups: Mapping[str, Int[Tensor, " rows"]]
    """Per party, the group of each row."""


def _divide(parties: Mapping[str, pa.Table], sensitive: Sequence[Feature]) -> _Division:
    sizes = [len(feature.code_names) for feature in sensitive]
    # One number per combination of codes: the positions read as digits, each column with its own base.
    combined = {party: torch.zeros(table.num_rows, dtype=torch.long) for party, table in parties.items()}
    for feature, size in zip(sensitive, sizes, strict=True):
        for party, table in parties.items():
            codes = positions(table[feature.name], feature)
            if (codes < 0).any():
                raise DataError(
                    f"{feature.name} has an unknown value at {party}",
                    wanted=f"one of {', '.join(feature.code_names)} in every row",
                    remedy="Leave these rows or the client out",
                )
            combined[party] = combined[party] * size + codes
    found, numbered = torch.cat(list(combined.values())).unique(return_inverse=True)
    # NumPy's, because torch's own loads a computer algebra system first, which takes longer than all the rest here.
    combinations = np.stack(np.unravel_index(found.numpy(), sizes), axis=1).tolist()
    names = tuple(
        ", ".join(feature.meaning(code) for feature, code in zip(sensitive, row, strict=True)) for row in combinations
    )
    if len(names) < 2:
        raise DataError(
            f"{' and '.join(feature.name for feature in sensitive)} is {names[0]!r} in every row",
            wanted="at least two groups to compare",
            remedy="Choose another sensitive column",
        )
    rows = numbered.split([len(numbers) for numbers in combined.values()])
    return _Division(names, tuple(map(tuple, combinations)), dict(zip(combined, rows, strict=True)))


def _check_labels(parties: Mapping[str, pa.Table], task: Task) -> None:
    found = {value for table in parties.values() for value in table[task.label].unique().to_pylist()}
    if len(found) < 2:
        raise DataError(
            f"the label {task.label!r} is the same in every row",
            wanted="both labels among the rows",
            remedy="Choose another label column, or keep the rows with the other label",
        )
