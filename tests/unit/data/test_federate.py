"""From the parties' tables to a federation."""

import pyarrow as pa
import pytest
import torch

from equfl.core.errors import DataError
from equfl.data.encoding import Feature
from equfl.data.federate import Task, federate

AGE = Feature("age")
SEX = Feature("sex", (1, 2), ("male", "female"))
RACE = Feature("race", (1, 2, 3), ("White", "Black", "Asian"))
TASK = Task((AGE, SEX, RACE), ("sex",), "rich", ("no", "yes"))
PARTIES = {
    "north": pa.table({"age": [20, 30, 40, 50], "sex": [1, 2, 1, 2], "race": [1, 3, 3, 1], "rich": [0, 1, 1, 0]}),
    "south": pa.table({"age": [25, 35, 45], "sex": [2, 2, 2], "race": [1, 1, 1], "rich": [1, 0, 0]}),
}


def first_two(party: str, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(2), torch.arange(2, rows)


def made(task=TASK, parties=PARTIES, **settings):
    return federate(parties, task, name="small", split=first_two, **settings)


def test_each_client_has_its_own_rows_split_as_asked():
    federation = made()
    assert federation.clients == ("north", "south")
    assert federation.train.sizes == (2, 2)
    assert federation.test.sizes == (2, 1)
    assert federation.train.pooled.labels.tolist() == [0, 1, 1, 0]
    assert federation.test.pooled.labels.tolist() == [1, 0, 0]
    assert federation.train.pooled.groups.tolist() == [0, 1, 1, 1]


def test_numbers_are_standardised_over_all_rows_of_the_client():
    ages = made().train[0].inputs[:, 0]
    everything = torch.tensor([20.0, 30, 40, 50])
    torch.testing.assert_close(ages, ((everything - everything.mean()) / everything.std(correction=0))[:2])


def test_the_schema_says_where_everything_is():
    schema = made().schema
    assert schema.shape == (6,)
    assert [(column.name, column.start, column.stop) for column in schema.columns] == [
        ("age", 0, 1),
        ("sex", 1, 3),
        ("race", 3, 6),
    ]
    assert schema.groups == ("male", "female")
    assert schema.classes == ("no", "yes")
    assert schema.group_codes == ((1,), (2,))


def test_several_sensitive_columns_mean_the_intersections_that_occur_and_each_column_alone_is_kept_too():
    federation = made(Task((AGE, SEX, RACE), ("sex", "race"), "rich", ("no", "yes")))
    assert federation.schema.groups == ("male, White", "male, Asian", "female, White", "female, Asian")
    assert federation.schema.group_codes == ((1, 3), (1, 5), (2, 3), (2, 5))
    assert federation.test.pooled.groups.tolist() == [1, 2, 2]
    assert {name: alone.names for name, alone in federation.groupings.items()} == {
        "sex": ("male", "female"),
        "race": ("White", "Asian"),
    }
    assert federation.groupings["sex"].groups.tolist() == [0, 1, 1]
    assert federation.groupings["race"].groups.tolist() == [1, 0, 0]


def test_the_order_of_the_sensitive_columns_is_that_of_the_groups_names():
    federation = made(Task((AGE, SEX, RACE), ("race", "sex"), "rich", ("no", "yes")))
    assert federation.schema.groups[0] == "White, male"
    assert federation.schema.group_codes[0] == (3, 1)


def test_one_sensitive_column_has_no_other_grouping():
    assert made().groupings == {}


def test_every_group_that_occurs_is_declared_even_if_no_test_row_is_of_it():
    parties = PARTIES | {"north": PARTIES["north"].set_column(2, "race", pa.array([2, 3, 3, 1]))}
    federation = made(Task((AGE, SEX, RACE), ("race",), "rich", ("no", "yes")), parties)
    assert federation.schema.groups == ("White", "Black", "Asian")
    assert 1 not in federation.test.pooled.groups
    assert federation.test.pooled.group_count == 3


def test_a_model_that_must_not_see_the_sensitive_columns_does_not():
    federation = made(Task((AGE, SEX, RACE), ("sex",), "rich", ("no", "yes"), exclude_sensitive=True))
    assert [column.name for column in federation.schema.columns] == ["age", "race"]
    assert federation.train.pooled.inputs.shape == (4, 4)
    assert federation.schema.group_codes == ()
    assert federation.schema.sensitive_inputs == ()
    assert federation.train.pooled.groups.tolist() == made().train.pooled.groups.tolist()


def test_progress_counts_the_parties():
    told = []
    made(progress=lambda *what: told.append(what))
    assert told == [("encode the rows", 1, 2), ("encode the rows", 2, 2)]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"sex": [1, 1, 2], "rich": [1, 1, 1]}, "the label 'rich' is the same in every row"),
        ({"sex": [1, 1, 1]}, "sex is 'male' in every row"),
        ({"sex": [1, None, 2]}, "sex has an unknown value at south"),
        ({"sex": [1, 3, 2]}, "sex has an unknown value at south; wanted one of 1, 2 in every row"),
    ],
)
def test_what_cannot_be_learnt_or_compared_is_refused(change, complaint):
    table = PARTIES["south"]
    for name, values in change.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    with pytest.raises(DataError, match=complaint):
        made(parties={"south": table})


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_client_without_rows_to_train_or_to_test_on_is_refused_by_name(rows):
    with pytest.raises(DataError, match=f"south has {rows} rows"):
        federate(
            PARTIES | {"south": PARTIES["south"].slice(0, rows)},
            TASK,
            name="small",
            split=lambda party, rows: (torch.arange(rows)[:2], torch.arange(rows)[2:]),
        )
