"""What the mod adds to a client's replies, and that it leaves the rest alone."""

import pytest
import torch
from flower_clients import Net, initial, trained
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from equfl.core.errors import ConfigError
from equfl.core.samples import Samples
from equfl.core.vector import Network
from equfl.data.toy import Toy
from equfl.flower import InlineGrid, feedback_mod, instructions
from equfl.flower.records import RECORD, pack, unpack
from equfl.methods.equfl_feedback import EquFLFeedback

ROWS = Samples(
    inputs=torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, 0.0], [-2.0, 1.0, 1.0], [0.0, 3.0, -1.0]]),
    labels=torch.tensor([0, 1, 1, 0]),
    groups=torch.tensor([0, 1, 0, 1]),
)
COUNT = {"count": torch.ones(())}


def app(code=trained, **settings) -> ClientApp:
    """An existing client with the mod."""
    defaults = {"method": EquFLFeedback(), "model": lambda context: Net(), "rows": lambda context: ROWS}
    made = ClientApp(mods=[feedback_mod(**(defaults | settings))])
    made.train()(code)
    made.evaluate()(code)
    return made


def sent(app: ClientApp, asked: dict | None = None, kind: str = "train") -> Message:
    """The reply to one message of the server's."""
    InlineGrid(app, nodes=1)  # so that a message can be made
    content = RecordDict({"arrays": initial(), "config": ConfigRecord({"lr": 0.1})})
    if asked is not None:
        content[RECORD] = ConfigRecord(pack(asked))
    context = Context(0, 3, {"partition-id": 3, "num-partitions": 4}, RecordDict(), {})
    return app(Message(content, 3, kind), context)


def test_the_counts_are_those_of_the_model_that_was_received():
    metrics = dict(sent(app(), COUNT).content["metrics"])
    (counts,) = unpack(metrics).values()
    net = Net().eval()
    net.load_state_dict(initial().to_torch_state_dict())
    predicted = net(ROWS.inputs).argmax(dim=1)
    assert counts.sum() == 4
    for row in range(4):
        assert counts[predicted[row], ROWS.labels[row], ROWS.groups[row]] == 1


def test_a_client_that_empties_the_message_is_counted_for_all_the_same():
    def greedy(message, context):
        reply = trained(message, context)
        message.content["arrays"].clear()
        return reply

    assert "equfl/counts/float64/2x2x2" in sent(app(greedy), COUNT).content["metrics"]


def test_it_says_whose_partition_it_is():
    assert sent(app(), {}).content["metrics"]["equfl/partition"] == 3


def test_the_clients_own_part_of_the_reply_is_untouched():
    plain = ClientApp()
    plain.train()(trained)
    with_mod, without = sent(app(), COUNT).content, sent(plain, COUNT).content
    assert {k: v for k, v in with_mod["metrics"].items() if not k.startswith("equfl/")} == dict(without["metrics"])
    assert with_mod["arrays"] == without["arrays"]


@pytest.mark.parametrize(("asked", "kind"), [(None, "train"), (COUNT, "evaluate")], ids=["not asked", "evaluation"])
def test_it_does_nothing_where_no_method_asks(asked, kind):
    def never(context):
        raise AssertionError("the rows are not needed")

    assert not any(key.startswith("equfl/") for key in sent(app(rows=never), asked, kind).content["metrics"])


def test_noise_has_the_deviation_that_was_asked_for_and_never_the_same_value_twice():
    federation = Toy(clients=1, rows=4000).load()
    rows = federation.train[0]
    settings = {
        "model": lambda context: Network(torch.nn.Linear(7, 2)),
        "rows": lambda context: rows,
        "method": EquFLFeedback(),
    }

    def counts(noise):
        made = ClientApp(mods=[feedback_mod(noise=lambda context: noise, **settings)])
        made.train()(trained)
        InlineGrid(made, nodes=1)
        torch.manual_seed(0)
        model = ArrayRecord(torch.nn.Linear(7, 2).state_dict())
        message = RecordDict({"arrays": model, RECORD: ConfigRecord(pack(COUNT))})
        reply = made(Message(message, 0, "train"), Context(0, 0, {"partition-id": 0}, RecordDict(), {}))
        return unpack(dict(reply.content["metrics"]))["counts"]

    exact = counts(0.0)
    off = torch.stack([counts(5.0) - exact for _ in range(100)])[:, exact > 50]
    assert 4.0 < off.std() < 6.0
    assert off.unique().numel() > 50


def test_noisy_counts_stay_possible():
    for _ in range(50):
        counts = unpack(dict(sent(app(noise=lambda context: 3.0), COUNT).content["metrics"]))["counts"]
        assert (counts >= 0).all()
        assert counts.sum() <= 4 + 1e-9


def test_noise_below_zero_is_refused():
    with pytest.raises(ConfigError, match="noise = -1"):
        sent(app(noise=lambda context: -1.0), COUNT)


def test_a_client_can_read_what_the_method_sent_along():
    seen = {}

    def curious(message, context):
        seen.update(instructions(message))
        return trained(message, context)

    sent(app(curious), {"weights": torch.tensor([[1.0, 2.0], [3.0, 4.0]]), "steps": torch.tensor(3)})
    assert torch.equal(seen["weights"], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert seen["steps"].item() == 3
