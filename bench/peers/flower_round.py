"""Rounds of Flower's own server with its own clients, no training and no TLS.

    flower_round.py server PORT CLIENTS ROUNDS SHAPES   prints one JSON document
    flower_round.py client PORT

SHAPES is a JSON list of shapes; every client sends back what it got, with the first array changed.
"""

import json
import logging
import resource
import sys
import time

import numpy as np


def server(port, clients, rounds, shapes):
    import flwr as fl
    from flwr.server.strategy import FedAvg

    logging.getLogger("flwr").setLevel(logging.ERROR)
    began = []

    class Timed(FedAvg):
        def configure_fit(self, server_round, parameters, client_manager):
            began.append((time.monotonic(), processor()))
            return super().configure_fit(server_round, parameters, client_manager)

    initial = [np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate(shapes)]
    strategy = Timed(
        fraction_fit=1.0, fraction_evaluate=0.0, min_fit_clients=clients, min_available_clients=clients,
        initial_parameters=fl.common.ndarrays_to_parameters(initial),
    )
    fl.server.start_server(
        server_address=f"127.0.0.1:{port}", config=fl.server.ServerConfig(num_rounds=rounds), strategy=strategy
    )
    began.append((time.monotonic(), processor()))
    print(json.dumps({
        "version": fl.__version__,
        "seconds": [b[0] - a[0] for a, b in zip(began, began[1:])],
        "processor_seconds": [b[1] - a[1] for a, b in zip(began, began[1:])],
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))


def processor():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def client(port):
    import flwr as fl

    logging.getLogger("flwr").setLevel(logging.ERROR)

    class Echo(fl.client.NumPyClient):
        def get_parameters(self, config):
            return []

        def fit(self, parameters, config):
            return [parameters[0] + 1, *parameters[1:]], 10, {}

    fl.client.start_client(server_address=f"127.0.0.1:{port}", client=Echo().to_client(), insecure=True)
    print(json.dumps({"processor_seconds": processor()}))


if __name__ == "__main__":
    if sys.argv[1] == "server":
        server(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), json.loads(sys.argv[5]))
    else:
        client(int(sys.argv[2]))
