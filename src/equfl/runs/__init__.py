"""From a config to a finished run: its folder, checkpoints, audit, comparison with FedAvg, and who looks on."""
