"""Keys, addresses, channels that come back, and servers that end in order."""

import asyncio
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import grpc.aio
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from sgfusion.errors import IdentityError, InputError, UnavailableError
from sgfusion.wire.channel import (
    Keys,
    is_loopback,
    open_channel,
    retrying,
    split_address,
    start_server,
    stop_server,
)
from sgfusion.wire.identity import Identity
from sgfusion.wire.status import Refusals, translated
from tests.cluster.keys import CLOUD, Issuer, dialled, keys_in, run_async, serving
from tests.cluster.rpcs import BY_NAME, register, register_greeters

EDGE = Identity("edge", "lublin")
ENROL = BY_NAME["Enrol"]


def write_keys(folder: Path, keys: Keys) -> None:
    for name, content in (("ca.crt", keys.ca), ("tls.crt", keys.certificate), ("tls.key", keys.key)):
        (folder / name).write_bytes(content)


def test_keys_are_read_from_a_folder(tmp_path: Path) -> None:
    keys = Issuer().keys(EDGE)
    write_keys(tmp_path, keys)
    assert Keys.load(tmp_path) == keys


def test_a_certificate_that_has_ended_is_refused_before_anybody_is_called(tmp_path: Path) -> None:
    write_keys(tmp_path, Issuer().keys(EDGE, begins=-9, ends=-1))
    with pytest.raises(IdentityError, match=r"tls\.crt ended on \d{4}-\d\d-\d\d: `sgfusion certs` makes it anew"):
        Keys.load(tmp_path)
    Keys.load(tmp_path, now=lambda: time.time() - 2 * 86_400)


def test_a_clock_that_is_behind_is_named(tmp_path: Path) -> None:
    write_keys(tmp_path, Issuer().keys(EDGE))
    with pytest.raises(IdentityError, match=r"tls\.crt is valid from .* UTC on: this host's clock is behind"):
        Keys.load(tmp_path, now=lambda: time.time() - 400 * 86_400)


@pytest.mark.parametrize("part", ["ca", "certificate", "key"])
@pytest.mark.parametrize("content", [b"", b"no PEM", b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"])
def test_files_that_prove_nothing_are_refused(tmp_path: Path, part: str, content: bytes) -> None:
    keys = Issuer().keys(EDGE)
    broken = {"ca": keys.ca, "certificate": keys.certificate, "key": keys.key, part: content}
    write_keys(tmp_path, Keys(**broken))
    with pytest.raises(IdentityError, match=r"does not hold a CA, a certificate and its key .*`sgfusion certs`"):
        Keys.load(tmp_path)


def test_a_key_of_another_certificate_or_behind_a_password_is_refused(tmp_path: Path) -> None:
    issuer = Issuer()
    write_keys(tmp_path, replace(issuer.keys(EDGE), key=issuer.keys(EDGE).key))
    with pytest.raises(IdentityError, match="its key"):
        Keys.load(tmp_path)
    keys = issuer.keys(EDGE)
    locked = load_pem_private_key(keys.key, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")
    )
    write_keys(tmp_path, replace(keys, key=locked))
    with pytest.raises(IdentityError, match="its key"):
        Keys.load(tmp_path)


@pytest.mark.parametrize("name", ["ca.crt", "tls.crt", "tls.key"])
def test_a_missing_file_is_named_with_what_makes_it(tmp_path: Path, name: str) -> None:
    for other in {"ca.crt", "tls.crt", "tls.key"} - {name}:
        (tmp_path / other).write_text(other)
    with pytest.raises(IdentityError) as raised:
        Keys.load(tmp_path)
    assert f"{tmp_path / name} cannot be read" in str(raised.value)
    assert "`sgfusion certs`" in str(raised.value)


def test_a_private_key_is_not_printed() -> None:
    assert "secret" not in repr(Keys(b"ca", b"certificate", b"secret"))


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("127.0.0.1:7400", ("127.0.0.1", 7400)),
        ("edge-lublin:0", ("edge-lublin", 0)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "lublin", ":7400", "lublin:", "lublin:x", "lublin:65536", "::1:7400", "a:-1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="address is"):
        split_address(address)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"])
def test_loopback(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize(
    "address", ["0.0.0.0:1", "[::]:1", "localhost.example.org:1", "127.0.0.1.nip.io:1", "8.8.8.8:1"]
)
def test_not_loopback(address: str) -> None:
    assert not is_loopback(address)


def test_a_taken_port_is_said() -> None:
    async def scene() -> None:
        async with serving(register_greeters) as address:
            with pytest.raises(UnavailableError, match=f"edge lublin cannot listen on {address}: the port is taken"):
                await start_server(register_greeters, address, me=EDGE, keys=None, refusals=Refusals())

    run_async(scene())


def test_the_chosen_port_is_given_and_ipv6_keeps_its_brackets() -> None:
    async def scene() -> None:
        for listen in ("127.0.0.1:0", "localhost:0", "[::1]:0"):
            try:
                server, address = await start_server(
                    register_greeters, listen, me=CLOUD, keys=None, refusals=Refusals()
                )
            except UnavailableError:
                assert listen == "[::1]:0"  # a machine without IPv6
                continue
            host, port = split_address(address)
            assert (host, port > 0) == (split_address(listen)[0], True)
            async with dialled(address, me=EDGE) as channel:
                assert await ENROL.call(channel) == [b"welcome"]
            await server.stop(None)

    run_async(scene())


def test_a_folder_made_by_certs_serves_and_dials(tmp_path: Path) -> None:
    keys = keys_in(tmp_path, [CLOUD, EDGE])

    async def scene() -> None:
        async with (
            serving(register_greeters, keys=keys[CLOUD]) as address,
            dialled(address, me=EDGE, keys=keys[EDGE]) as channel,
        ):
            assert await ENROL.call(channel) == [b"welcome"]

    run_async(scene())


def test_a_channel_finds_a_server_that_comes_back() -> None:
    issuer = Issuer()
    mine, its = issuer.keys(EDGE), issuer.keys(CLOUD)

    async def scene() -> None:
        async with serving(register_greeters, keys=its) as address:
            channel = open_channel(address, server=CLOUD, me=EDGE, keys=mine)
            assert await ENROL.call(channel) == [b"welcome"]

        async def enrol() -> list[bytes]:
            with translated():
                return await ENROL.call(channel, timeout=5)

        with pytest.raises(UnavailableError):
            await retrying(enrol, budget_seconds=0.3)
        server, _ = await start_server(register_greeters, address, me=CLOUD, keys=its, refusals=Refusals())
        assert await retrying(enrol, budget_seconds=10) == [b"welcome"]
        await channel.close()
        await server.stop(None)

    run_async(scene(), 30)


def test_every_channel_has_a_connection_of_its_own() -> None:
    peers: set[str] = set()

    async def enrol(_request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
        peers.add(context.peer())
        return b""

    async def scene() -> None:
        async with (
            serving(lambda server: register(server, {ENROL.path: enrol})) as address,
            dialled(address, me=EDGE) as first,
            dialled(address, me=EDGE) as second,
        ):
            for channel in (first, second, first, second):
                await ENROL.call(channel)

    run_async(scene())
    assert len(peers) == 2


def test_a_server_that_stops_while_calls_are_open_leaves_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    """Each call takes one turn of the event loop more to end than the one before: some end just when the loop does."""
    open_calls = 0

    async def enrol(_request: bytes, _context: object) -> bytes:
        nonlocal open_calls
        open_calls += 1
        turns = open_calls
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(turns):
                await asyncio.sleep(0)
        return b""

    async def scene() -> None:
        serve = partial(register, behaviours={ENROL.path: enrol})
        server, address = await start_server(serve, "127.0.0.1:0", me=CLOUD, keys=None, refusals=Refusals())
        channel = open_channel(address, server=CLOUD, me=EDGE, keys=None)
        calls = [asyncio.create_task(ENROL.call(channel)) for _ in range(60)]
        while open_calls < len(calls):
            await asyncio.sleep(0.01)
        await stop_server(server, 0.1)
        for call in calls:
            call.cancel()  # and nothing more: the end of the event loop comes next

    for _ in range(3):
        open_calls = 0
        run_async(scene())
    assert "Traceback" not in capfd.readouterr().err
