"""What is learned, from whose rows, and what fair means: this page is to be made your own.

Three things are yours: ``rows`` reads the rows of the machine that it runs on, ``SCHEMA`` says what the model's inputs
mean, and ``net`` is the model. As it stands, the rows are those of people drawn from a profile of a census, and each
node has the rows of some states.
"""

from functools import cache

import torch
from flwr.app import Context
from torch import nn

from equfl.core.component import find
from equfl.core.samples import Samples
from equfl.core.schema import Schema
from equfl.data.base import Dataset, Federation
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.methods.equfl_feedback import EquFLFeedback

TARGET = EqualizedOdds()
"""What fair means: equal shares of right and of wrong decisions in each group."""
METHOD = EquFLFeedback()
"""What the server does about it; server and clients must have the same."""


@cache
def _federation(name: str) -> Federation:
    return find(Dataset, name)().load()


def schema(context: Context) -> Schema:
    """What the model's inputs mean. For a table of your own, write it out::

    Schema(
        shape=(3,),
        classes=("refused", "granted"),
        groups=("woman", "man"),
        sensitive=("sex",),
        columns=(Column("age", 0), Column("sex", 1, ("woman", "man"), off=(0.0, 0.0), on=(1.0, 1.0))),
        group_codes=((1,), (2,)),
    )
    """
    return _federation(str(context.run_config["data"])).schema


def rows(context: Context, *, test: bool = False) -> Samples:
    """The rows of this node: inputs, labels and groups. Read your own table here; nothing of it leaves the machine."""
    federation = _federation(str(context.run_config["data"]))
    shards = federation.test if test else federation.train
    node, nodes = int(context.node_config["partition-id"]), int(context.node_config["num-partitions"])
    mine = [shards[client] for client in range(node, len(shards), nodes)]
    return Samples(
        inputs=torch.cat([part.inputs for part in mine]),
        labels=torch.cat([part.labels for part in mine]),
        groups=torch.cat([part.groups for part in mine]),
    )


def net(context: Context) -> nn.Module:
    """The model that everybody trains."""
    inputs = schema(context).shape[0]
    return nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, 2))


def noise(context: Context) -> float:
    """Standard deviation of the noise on each count that leaves this node."""
    return float(context.run_config["noise"])
