"""A federation as one safetensors file: the rows as tensors, all that is known of them in its header."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from equfl.core.samples import Samples, Shards
from equfl.core.schema import Column, Schema
from equfl.data import tensor_file
from equfl.data.base import Federation, Grouping

FORMAT = 3
"""Goes up when the file, or the encoding of any data set, changes: older files are then not read."""


def write(federation: Federation, path: Path) -> None:
    """Write the file, whatever was there before."""
    tensors = {
        **{f"train.{name}": value for name, value in _tensors(federation.train).items()},
        **{f"test.{name}": value for name, value in _tensors(federation.test).items()},
        **{f"grouping.{name}": grouping.groups for name, grouping in federation.groupings.items()},
    }
    about = {
        "name": federation.name,
        "clients": federation.clients,
        "sizes": {"train": federation.train.sizes, "test": federation.test.sizes},
        "schema": asdict(federation.schema),
        "groupings": {name: grouping.names for name, grouping in federation.groupings.items()},
        "facts": dict(federation.facts),
        "format": FORMAT,
    }
    tensor_file.write(path, tensors, about)


def read(path: Path) -> Federation | None:
    """The federation in the file; ``None`` if there is no file, or if it is not what was written."""
    found = tensor_file.read(path)
    if found is None or found[1].get("format") != FORMAT:
        return None
    tensors, about = found
    schema = _schema(about["schema"])
    return Federation(
        name=about["name"],
        clients=tuple(about["clients"]),
        train=_shards("train", tensors, about["sizes"]["train"], schema),
        test=_shards("test", tensors, about["sizes"]["test"], schema),
        schema=schema,
        groupings={
            name: Grouping(tuple(names), tensors[f"grouping.{name}"]) for name, names in about["groupings"].items()
        },
        facts=about["facts"],
    )


def _tensors(shards: Shards) -> dict[str, Tensor]:
    tensors = {
        "inputs": shards.pooled.inputs,
        "labels": shards.pooled.labels,
        "groups": shards.pooled.groups,
        "neighbours": shards.pooled.neighbours,
        "own_neighbours": shards.own_neighbours,
    }
    return {name: value for name, value in tensors.items() if value is not None}


def _shards(part: str, tensors: Mapping[str, Tensor], sizes: list[int], schema: Schema) -> Shards:
    pooled = Samples(
        tensors[f"{part}.inputs"],
        tensors[f"{part}.labels"],
        tensors[f"{part}.groups"],
        classes=len(schema.classes),
        group_count=len(schema.groups),
        neighbours=tensors.get(f"{part}.neighbours"),
    )
    return Shards(pooled, tuple(sizes), tensors.get(f"{part}.own_neighbours"))


def _schema(about: Mapping[str, Any]) -> Schema:
    # JSON knows lists only; everything in a schema is a tuple.
    columns = [{key: _tuples(value) for key, value in column.items()} for column in about["columns"]]
    rest = {key: _tuples(value) for key, value in about.items() if key != "columns"}
    return Schema(**rest, columns=tuple(Column(**column) for column in columns))


def _tuples(value: Any) -> Any:
    return tuple(_tuples(entry) for entry in value) if isinstance(value, list) else value
