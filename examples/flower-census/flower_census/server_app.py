"""What the server does: the strategy that it always had, with equfl around it."""

from math import ceil
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from equfl.data.tensor_file import write
from equfl.flower import EquFLStrategy, pooled
from flower_census import task

ROWS = 1000
"""About how many rows a client trains on: the server needs to know how many steps a client takes, not its rows."""

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    torch.manual_seed(int(config["seed"]))
    net = task.net(context)

    nodes = int(config["min-nodes"])
    strategy = FedAvg(
        min_train_nodes=nodes,
        min_evaluate_nodes=nodes,
        min_available_nodes=nodes,
        evaluate_metrics_aggr_fn=pooled(task.TARGET),
    )
    if config["fair"]:
        strategy = EquFLStrategy(
            strategy,
            method=task.METHOD,
            model=net,
            schema=task.schema(context),
            target=task.TARGET,
            learning_rate=float(config["learning-rate"]),
            local_steps=int(config["local-epochs"]) * ceil(ROWS / int(config["batch-size"])),
            seed=int(config["seed"]),
            state=str(config["state-dir"]) or None,
        )
    result = strategy.start(
        grid,
        ArrayRecord(net.state_dict()),
        num_rounds=int(config["num-server-rounds"]),
        timeout=float(config["round-timeout"]),
    )
    if config["out"]:
        about = {str(number): dict(metrics) for number, metrics in result.evaluate_metrics_clientapp.items()}
        write(Path(str(config["out"])).expanduser(), dict(result.arrays.to_torch_state_dict()), about)
