"""A NumPyClient that adds to all weights what the run's configuration says, and fails in the second round."""

from flwr.client import ClientApp, NumPyClient


class Client(NumPyClient):
    """Trains nothing."""

    def __init__(self, step):
        self.step = step

    def fit(self, parameters, config):
        """Add to all weights, in double precision and in Fortran's order."""
        if config["server_round"] == 2:
            raise RuntimeError("no second round for me")
        import numpy as np

        return [np.asfortranarray(p.astype(np.float64) + self.step) for p in parameters], 7, {"loss": 0.25}


def client_fn(context):
    """Make the client of this node."""
    return Client(float(context.run_config["step"])).to_client()


app = ClientApp(client_fn=client_fn)
