"""Flower's gRPC path: its `start_server` and `start_client`, bidirectional streams, FedAvg, no-op fits.

Runs in a virtual environment of its own, so it imports nothing of ours but the module beside it, and by its folder.
Flower's newer path (SuperLink and SuperNodes) polls every three seconds and is not compared: it would only lose.
"""

import argparse
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import flwr  # type: ignore[import-not-found]
import numpy as np
from flwr.client import NumPyClient, start_client  # type: ignore[import-not-found]
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays  # type: ignore[import-not-found]
from flwr.server import Server, ServerConfig, SimpleClientManager, start_server  # type: ignore[import-not-found]
from flwr.server.history import History  # type: ignore[import-not-found]
from flwr.server.strategy import FedAvg  # type: ignore[import-not-found]
from parent import end_with_parent, say, serve_rounds  # type: ignore[import-not-found]


class _Server(Server):  # type: ignore[misc]
    """Does rounds for the parent in place of a number of them in a row."""

    def __init__(self, devices: int, weights: int) -> None:
        strategy = FedAvg(min_fit_clients=devices, min_available_clients=devices, fraction_evaluate=0.0)
        super().__init__(client_manager=SimpleClientManager(), strategy=strategy)
        self.set_max_workers(devices)  # its default, a few more than cores, has devices wait for each other
        self._devices, self._weights = devices, weights
        self._number = 0

    def fit(self, num_rounds: int, timeout: float | None) -> tuple[History, float]:  # noqa: ARG002 (Flower's)
        self.client_manager().wait_for(self._devices)
        say("ready")
        serve_rounds(self._rounds)
        return History(), 0.0

    def _rounds(self, rounds: int) -> list[float]:
        seconds = []
        for _ in range(rounds):
            self._number += 1
            theta = np.random.default_rng().random(self._weights, np.float32)
            began = time.perf_counter()
            self.parameters = ndarrays_to_parameters([theta])
            result = self.fit_round(self._number, timeout=60)
            if result is None or result[0] is None:
                raise RuntimeError("nobody answered")
            (mean,) = parameters_to_ndarrays(result[0])
            seconds.append(time.perf_counter() - began)
            if not np.allclose(mean, theta) or len(result[2][0]) != self._devices:
                raise RuntimeError("the mean of equal vectors is another one, or a client did not answer")
        return seconds


class _Client(NumPyClient):  # type: ignore[misc]
    def fit(
        self,
        parameters: list[Any],
        config: dict[str, Any],  # noqa: ARG002 (Flower's)
    ) -> tuple[list[Any], int, dict[str, Any]]:
        return parameters, 1, {}


def main() -> None:
    """One process of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--certs", type=Path)
    parser.add_argument("--devices", type=int, required=True)
    parser.add_argument("--weights", type=int, required=True)
    parser.add_argument("--attend", help="be clients, of the server with this address")
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    if given.attend is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        print(f"flwr {flwr.__version__}", file=sys.stderr)
        say(address)
        server = _Server(given.devices, given.weights)
        start_server(server_address=address, server=server, config=ServerConfig(num_rounds=1), certificates=None)
        return
    end_with_parent()
    threads = [
        threading.Thread(target=lambda: start_client(server_address=given.attend, client=_Client().to_client()))
        for _ in range(given.devices)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
