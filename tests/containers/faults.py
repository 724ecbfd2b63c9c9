"""What may befall a container while it trains: each a function that begins it, sees that it hits, and ends it."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.containers import proxy
from tests.containers.project import PATIENCE, REFUSALS, Project

LASTS = 10.0
"""Seconds of a pause, of a cut, of loss."""
PORT = 7070
PROXY = "proxy"


@dataclass(frozen=True)
class Hit:
    """What a fault falls on: a service, and those of its networks that network faults are on."""

    service: str
    networks: Sequence[str]
    zones: Sequence[str]
    """Those that cannot go on without it; none can without a device, all can without the cloud."""


def kill(cluster: Project, hit: Hit) -> None:
    """SIGKILL to the process itself, as when it crashes: the engine starts it again, by its restart policy.

    (`docker kill` would be our own wish, which the engine respects: it would stay dead.)
    """
    container = cluster.container(hit.service)
    with suppress(*REFUSALS):  # the engine may have forgotten the shell, which ended with the rest, before it is asked
        container.exec_run(["sh", "-c", "kill -KILL -1"])  # all but the container's init and this shell
    deadline = time.monotonic() + PATIENCE
    while container.attrs["RestartCount"] == 0:
        assert time.monotonic() < deadline, f"{hit.service} was killed, and not started again\n{cluster.logs()}"
        time.sleep(0.05)  # between two looks
        container.reload()
    still_training(cluster, hit)


def pause(cluster: Project, hit: Hit) -> None:
    container = cluster.container(hit.service)
    container.pause()
    _wait_in_vain(cluster, hit)
    container.unpause()


def cut_off(cluster: Project, hit: Hit) -> None:
    """Off its networks, and on again under the same names, perhaps with another address."""
    container = cluster.container(hit.service)
    found = container.attrs["NetworkSettings"]["Networks"]
    aliases = {network: found[cluster.network(network)]["Aliases"] for network in hit.networks}
    networks = {network: cluster.engine.networks.get(cluster.network(network)) for network in hit.networks}
    for network in networks.values():
        network.disconnect(container)
    _wait_in_vain(cluster, hit)
    for name, network in networks.items():
        network.connect(container, aliases=aliases[name])


def lose_packets(cluster: Project, hit: Hit) -> None:
    """One of five, in each direction."""
    found = cluster.container(hit.service).attrs["NetworkSettings"]["Networks"]
    addresses = [found[cluster.network(network)]["IPAddress"] for network in hit.networks]
    chance = "-m statistic --mode random --probability 0.2 -j DROP"
    rules = [f"{rule} {chance}" for a in addresses for rule in (f"INPUT -d {a}", f"OUTPUT -s {a}")]
    _in_network_of(cluster, hit.service, *(f"iptables -A {rule}" for rule in rules))
    still_training(cluster, hit)
    time.sleep(LASTS)
    listing = _in_network_of(cluster, hit.service, "iptables -nvxL", *(f"iptables -D {rule}" for rule in rules))
    lost = [int(line.split()[0]) for line in listing.splitlines() if " DROP " in line]
    assert len(lost) == len(rules), listing
    assert all(lost), f"no packet was lost:\n{listing}"


def delay(cluster: Project, _hit: Hit) -> None:
    """By the proxy, which has stood there since before the start: see `behind_a_proxy`."""
    assert cluster.container(PROXY).logs().decode().count("leads to") >= 2


FAULTS: dict[str, Callable[[Project, Hit], None]] = {
    "killed": kill,
    "paused": pause,
    "cut off": cut_off,
    "losing packets": lose_packets,
    "delayed": delay,
}


def still_training(cluster: Project, hit: Hit) -> None:
    assert not cluster.statuses(2)[-1]["finished"], f"all was over before {hit.service} was hit\n{cluster.logs()}"


def _wait_in_vain(cluster: Project, hit: Hit) -> None:
    """The time that a fault lasts; in its second half nothing moves that cannot, or it has not hit."""
    time.sleep(LASTS / 2)
    before = _reached(cluster, hit)
    still_training(cluster, hit)
    time.sleep(LASTS / 2)
    assert _reached(cluster, hit) == before, f"{hit.service} is gone, and yet all goes on\n{cluster.logs()}"


def _reached(cluster: Project, hit: Hit) -> object:
    """Rounds of the zones that need it; if it is the cloud, which none needs, what that has told of them."""
    reached = cluster.rounds()
    return {zone: reached[zone] for zone in hit.zones} if hit.zones else len(cluster.statuses())


def _in_network_of(cluster: Project, service: str, *commands: str) -> str:
    """Run the host's own iptables in the network of a container: images have none, and tests need not be root."""
    printed: bytes = cluster.engine.containers.run(
        cluster.image("edge"),
        ["/host", "sh", "-ec", "PATH=$PATH:/usr/sbin:/sbin\n" + "\n".join(commands)],
        entrypoint="chroot",
        network_mode=f"container:{cluster.container(service).id}",
        volumes={"/": {"bind": "/host", "mode": "ro"}},
        cap_add=["NET_ADMIN"],
        user="0:0",
        labels={"sgfusion.test": cluster.name},
        remove=True,
    )
    return printed.decode()


def behind_a_proxy(services: dict[str, Any], hit: Hit) -> None:
    """Change a compose file's services: on those networks the service's name leads to a proxy, and that to it.

    A device host serves nothing: for one, the proxy stands in front of the edges that it dials.
    """
    behind, leads = services[hit.service], [f"{PORT}={hit.service}-itself:{PORT}"]
    aliases = [hit.service]
    if hit.service.startswith("devices-"):
        leads, aliases = [], []
        for place, (option, edge) in enumerate(zip(behind["command"], behind["command"][1:], strict=False)):
            if option == "--edge":
                zone, _, address = edge.partition("=")
                behind["command"][place + 1] = f"{zone}={PROXY}:{PORT + len(leads)}"
                leads.append(f"{PORT + len(leads)}={address}")
    else:
        # Compose gives a service its own name on all of its networks, so it needs another.
        kept = {network: [] if network in hit.networks else aliases for network in behind["networks"]}
        behind["networks"] = {network: {"aliases": names} for network, names in kept.items()}
        services[f"{hit.service}-itself"] = services.pop(hit.service)
    services[PROXY] = {
        "image": behind["image"],
        "entrypoint": ["python3", "-uc", Path(proxy.__file__).read_text("utf-8"), *leads],
        "init": True,
        "healthcheck": {"disable": True},
        "networks": {network: {"aliases": aliases} for network in hit.networks},
    }
