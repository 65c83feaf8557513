"""Nothing: the coordinator is the server."""

from flwr.server import ServerApp

app = ServerApp()
