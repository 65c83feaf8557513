"""What Flower's own server runs. Grange's coordinator does this itself, and does not look at it."""

import numpy as np
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Average for some rounds, from random weights."""
    random, weights = np.random.default_rng(1), []
    for inputs, outputs in [(784, 200), (200, 200), (200, 10)]:
        weights.append(random.normal(0, (2 / inputs) ** 0.5, (outputs, inputs)).astype(np.float32))
        weights.append(np.zeros(outputs, np.float32))
    FedAvg(fraction_evaluate=0).start(
        grid=grid, initial_arrays=ArrayRecord(weights), num_rounds=int(context.run_config["num-server-rounds"])
    )
