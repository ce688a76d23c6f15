"""What a client does: train on its own rows, and count how the model it was sent decides on them."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import nn

from equfl.flower import counted, feedback_mod
from flower_census import task

# The one thing that a fair federation adds to a client. The noise hides single people in the counts before they leave.
app = ClientApp(mods=[feedback_mod(method=task.METHOD, model=task.net, rows=task.rows, noise=task.noise)])


@app.train()
def train(message: Message, context: Context) -> Message:
    config, samples = context.run_config, task.rows(context)
    net = received(message, context)
    optimiser = torch.optim.SGD(net.parameters(), lr=float(config["learning-rate"]))
    for _ in range(int(config["local-epochs"])):
        for batch in torch.randperm(len(samples)).split(int(config["batch-size"])):
            loss = nn.functional.cross_entropy(net(samples.inputs[batch]), samples.labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    metrics = MetricRecord({"num-examples": len(samples), "train-loss": loss.item()})
    return Message(RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}), reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    samples = task.rows(context, test=True)
    with torch.no_grad():
        predictions = received(message, context)(samples.inputs).argmax(dim=1)
    return Message(RecordDict({"metrics": counted(predictions, samples)}), reply_to=message)


def received(message: Message, context: Context) -> nn.Module:
    """The model that came with the message."""
    net = task.net(context)
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    return net
