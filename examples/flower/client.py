"""A Flower client as they have been since Flower 1.0: it trains a small network in numpy.

python client.py ADDRESS FOLDER [AUTHORITY.pem]

ADDRESS is the server's host and port, FOLDER has images.npy and labels.npy. The server may be Flower's or Grange's; with
Grange's, AUTHORITY.pem is the certificate in the coordinator's folder, if the connection is to be encrypted.
"""

import pathlib
import sys

import flwr as fl

sys.path.insert(0, str(pathlib.Path(__file__).parent / "app"))
from shed import task  # noqa: E402


class Client(fl.client.NumPyClient):
    """Trains what it is sent."""

    def __init__(self, folder):
        self.images, self.labels = task.load(folder)

    def fit(self, parameters, config):
        """Train and return the new weights, the number of examples, and the loss."""
        weights, loss = task.train(
            parameters,
            self.images,
            self.labels,
            epochs=int(config.get("local_epochs", 1)),
            batch=int(config.get("batch_size", 32)),
            rate=float(config.get("lr", 0.05)),
            seed=int(config.get("server_round", 0)),
        )
        return weights, len(self.images), {"loss": loss}


if __name__ == "__main__":
    address, folder, *authority = sys.argv[1:]
    certificate = pathlib.Path(authority[0]).read_bytes() if authority else None
    fl.client.start_client(
        server_address=address, client=Client(folder).to_client(), root_certificates=certificate
    )
