"""Who reaches whom, and who has which keys: from inside of containers."""

import json
import os
from pathlib import Path
from typing import Any

import docker
import requests
from docker.models.containers import Container

from sgfusion.wire.identity import ALLOWED, Identity
from tests.cluster.rpcs import RPCS
from tests.containers.project import Project, project, tag_of
from tests.containers.runs import ZONES, run_text

NEVER = "elm"
"""A zone that never comes: all others are there and wait for it, for as long as these tests look at them."""
HOSTS = {"devices-ash": "edge-ash", "devices-birch": "edge-birch"}
DEVICES = ("d0", "d1")

CONNECT = """
import json, socket, sys
def tried(host):
    try:
        socket.create_connection((host, 7070), timeout=3).close()
    except OSError as error:
        return type(error).__name__
    return "connected"
print(json.dumps([tried(host) for host in sys.argv[1:]]))
"""
CALL = """
import asyncio, json, pathlib, sys, grpc
from sgfusion.wire.channel import Keys, open_channel
from sgfusion.wire.identity import Identity

async def code(channel, kind, path):
    call = channel.stream_stream(path)(timeout=20)
    try:
        if kind == "one":
            await call.write(b"")
            await call.done_writing()
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError:
        pass
    return (await call.code()).name

async def main(keys, role, zone, address, *paths):
    loaded = Keys.load(pathlib.Path(keys))
    server = Identity(role, "" if role == "cloud" else zone)
    async with open_channel(address, server=server, me=Identity("device", "d0"), keys=loaded) as channel:
        print(json.dumps({path: await code(channel, *path.split(" ")) for path in paths}))

asyncio.run(main(*sys.argv[1:]))
"""
"""All RPCs look like streams on the wire. One that takes a single message gets it, empty; others are refused before
any, and a client that still writes then may hear of a reset instead.
"""
GREET = """
import json, pathlib, socket, ssl, sys
def greeted(host, how):
    connection = socket.create_connection((host, 7070), timeout=20)
    try:
        if how != "plain":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            if how != "nobody":
                context.load_cert_chain(pathlib.Path(how) / "tls.crt", pathlib.Path(how) / "tls.key")
            connection = context.wrap_socket(connection)
        connection.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        return bool(connection.recv(1))
    except OSError:
        return False
    finally:
        connection.close()
how, *hosts = sys.argv[1:]
print(json.dumps([greeted(host, how) for host in hosts]))
"""
"""Whether a server says a word of HTTP/2. With TLS 1.3 a client learns after the handshake that it was refused."""
LOOK = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=20).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
KEYS = """
import json, os, pathlib
from cryptography import x509
from sgfusion.wire.channel import Keys
found, unread = [], []
elsewhere = ("/proc", "/sys", "/dev", "/usr", "/opt/venv")
for folder, folders, files in os.walk("/", onerror=lambda error: unread.append(error.filename)):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in elsewhere]
    for path in (pathlib.Path(folder, name) for name in files):
        try:
            text = path.read_bytes() if path.is_file() else b""
        except OSError:
            unread.append(str(path))
            text = b""
        if b"PRIVATE KEY" in text:
            keys = Keys.load(path.parent)  # refuses a key that is not the certificate's
            names = x509.load_pem_x509_certificate(keys.certificate).extensions
            names = names.get_extension_for_class(x509.SubjectAlternativeName).value
            found += names.get_values_for_type(x509.UniformResourceIdentifier) if keys.key == text else [str(path)]
mounted = tuple(line.split()[4] + "/" for line in open("/proc/self/mountinfo") if line.split()[4] != "/")
print(json.dumps([sorted(found), [path for path in unread if f"{path}/".startswith(mounted)]]))
"""
"""Whose private keys can be read in here, by their certificates; and which mounted files could not be looked into.
(Those of the image are the same for all, and have no keys: see test_images.py.)
"""


def test_everybody_reaches_only_whom_it_should_and_has_only_its_own_keys(
    engine: docker.DockerClient, images: dict[str, str], tmp_path: Path
) -> None:
    """One cluster for all: to start it is what takes time."""

    def change(document: dict[str, Any]) -> None:
        del document["services"][f"edge-{NEVER}"]
        for host in HOSTS:
            document["services"][host]["depends_on"].pop(f"edge-{NEVER}", None)

    with project(engine, tmp_path, run_text(1, zones=[*ZONES, NEVER]), tag_of(images), hosts=2, change=change) as made:
        made.compose("up", "--detach")
        made.watch()
        made.until(lambda status: [zone["state"] for zone in status["zones"]].count("waiting") == len(ZONES))
        no_device_reaches_the_cloud(made)
        an_edge_refuses_a_device_what_is_not_for_devices(made)
        the_cloud_refuses_a_device_everything_even_where_it_reaches_it(made)
        without_a_certificate_nobody_says_a_word(made)
        everybody_has_its_own_keys_and_nobody_elses(made)
        nobody_is_root_or_writes_beyond_its_own_folders(made)
        the_page_is_on_this_machine_alone_and_asks_for_its_token(made)


def said(container: Container, script: str, *arguments: str) -> Any:
    """What a script prints in a running container, as that container's own user. A busy engine may lose all of it, and
    still say that the script went well: then it is asked again.
    """
    for _ in range(5):
        code, out = container.exec_run(["python3", "-c", script, *arguments])
        assert code == 0, out.decode()
        if out:
            return json.loads(out)
    raise AssertionError(f"{container.name}: {script} prints nothing, again and again")


def stranger_says(cluster: Project, network: str, keys: str | None, script: str, *arguments: str) -> Any:
    """The same in a new container on that network, with the keys of a volume, or none."""
    out: bytes = cluster.engine.containers.run(
        cluster.image("edge"),
        ["-c", script, *arguments],
        entrypoint="python3",
        network=cluster.network(network),
        volumes={cluster.volume(keys): {"bind": "/keys", "mode": "ro"}} if keys else {},
        labels={"sgfusion.test": cluster.name},
        remove=True,
    )
    return json.loads(out)


def address(container: Container, network: str) -> str:
    container.reload()
    found: str = container.attrs["NetworkSettings"]["Networks"][network]["IPAddress"]
    return found


def refused_to_devices(service: str) -> list[str]:
    """RPCs of a service that are not for devices, as `CALL` takes them."""
    kinds = {rpc.path: "many" if rpc.streams_in else "one" for rpc in RPCS}
    return [f"{kinds[p]} {p}" for p, roles in ALLOWED.items() if service in p and "device" not in roles]


def no_device_reaches_the_cloud(cluster: Project) -> None:
    cloud = address(cluster.container("cloud"), cluster.network("backbone"))
    for host, edge in HOSTS.items():
        by_name, by_address, control = said(cluster.container(host), CONNECT, "cloud", cloud, edge)
        assert by_name == "gaierror"  # nobody of that name
        assert by_address in ("OSError", "TimeoutError")  # no way there
        assert control == "connected"


def an_edge_refuses_a_device_what_is_not_for_devices(cluster: Project) -> None:
    paths = refused_to_devices("PeerService") + refused_to_devices("EdgeService")
    assert "many /sgfusion.v1.PeerService/Direction" in paths
    edge = ["edge", "ash", "edge-ash:7070"]
    assert said(cluster.container("devices-ash"), CALL, "/keys/device-d0", *edge, *paths) == dict.fromkeys(
        paths, "PERMISSION_DENIED"
    )


def the_cloud_refuses_a_device_everything_even_where_it_reaches_it(cluster: Project) -> None:
    """With a device's keys on a network where no device is."""
    paths = refused_to_devices("CloudService")
    assert len(paths) == 8
    cloud = ["cloud", "-", "cloud:7070"]
    denied = dict.fromkeys(paths, "PERMISSION_DENIED")
    assert stranger_says(cluster, "backbone", "keys-devices-ash", CALL, "/keys/device-d0", *cloud, *paths) == denied
    status = "one /sgfusion.v1.CloudService/GetStatus"  # it is the role that is refused: another one is answered
    answered = run_as_operator(cluster, CALL, "/keys", *cloud, status)
    assert answered == {status: "OK"}


def run_as_operator(cluster: Project, script: str, *arguments: str) -> Any:
    return said(cluster.engine.containers.get(f"{cluster.name}-watcher"), script, *arguments)


def without_a_certificate_nobody_says_a_word(cluster: Project) -> None:
    edges = [f"edge-{zone}" for zone in ZONES]
    for how in ("nobody", "plain"):
        assert stranger_says(cluster, "field", None, GREET, how, *edges) == [False] * len(edges)
        assert stranger_says(cluster, "backbone", None, GREET, how, "cloud", *edges) == [False] * (1 + len(edges))
    assert stranger_says(cluster, "field", "keys-devices-ash", GREET, "/keys/device-d0", *edges) == [True] * len(edges)
    assert run_as_operator(cluster, GREET, "/keys", "cloud") == [True]


def the_page_is_on_this_machine_alone_and_asks_for_its_token(cluster: Project) -> None:
    cloud = cluster.container("cloud")
    cloud.reload()
    published = {port: places for port, places in cloud.attrs["NetworkSettings"]["Ports"].items() if places}
    ((port, (place,)),) = published.items()
    assert (port, place["HostIp"]) == ("7080/tcp", "127.0.0.1")
    network = cluster.engine.networks.get(cluster.network("page"))
    assert [container.name for container in network.containers] == [cloud.name]
    assert cloud.exec_run(["stat", "--format", "%a %u", "/state/page-token"]).output.split() == [b"600", b"10001"]
    token = cloud.exec_run(["cat", "/state/page-token"]).output.decode().strip()
    url = f"http://127.0.0.1:{place['HostPort']}/api/run"
    assert requests.get(url, timeout=60).status_code == 401
    shown = requests.get(url, headers={"authorization": f"Bearer {token}"}, timeout=60).json()
    assert [zone["name"] for zone in shown["zones"]] == [*ZONES, NEVER]
    assert stranger_says(cluster, "backbone", None, LOOK, "http://cloud:7080/api/run") == 401
    assert token not in cloud.logs().decode()


def everybody_has_its_own_keys_and_nobody_elses(cluster: Project) -> None:
    """Nor has anybody the CA's."""
    expected = {"cloud": [Identity("cloud")], "console": [Identity("operator")]}
    expected |= {f"edge-{zone}": [Identity("edge", zone)] for zone in ZONES}
    expected |= {host: [Identity("device", device) for device in DEVICES] for host in HOSTS}
    for service, owners in expected.items():
        container = cluster.container(service)
        assert said(container, KEYS) == [sorted(owner.uri for owner in owners), []], service
        mounts = {mount["Name"] for mount in container.attrs["Mounts"] if mount["Type"] == "volume"}
        own = {"operator" if service == "console" else service}
        assert {name for name in mounts if "_keys-" in name} == {cluster.volume(f"keys-{name}") for name in own}
        assert cluster.volume("authority") not in mounts


def nobody_is_root_or_writes_beyond_its_own_folders(cluster: Project) -> None:
    script = """
import json, os
def writes(folder):
    try:
        open(os.path.join(folder, "new"), "w").close()
    except OSError:
        return False
    return True
folders = ("/", "/etc", "/etc/sgfusion", "/keys", "/opt/venv", "/usr/bin", "/var/tmp")
print(json.dumps([os.getuid(), [folder for folder in folders if writes(folder)]]))
"""
    running = [c for c in cluster.containers() if c.status == "running" and "watcher" not in str(c.name)]
    assert len(running) == 1 + len(ZONES) + len(HOSTS) + 1
    for container in running:
        user, writable = said(container, script)
        assert user in (10001, os.getuid())
        assert user != 0
        assert writable == []
        assert container.attrs["HostConfig"]["ReadonlyRootfs"]
        assert container.attrs["HostConfig"]["CapDrop"] == ["ALL"]
        assert not container.attrs["HostConfig"]["CapAdd"]
        assert "no-new-privileges:true" in container.attrs["HostConfig"]["SecurityOpt"]
