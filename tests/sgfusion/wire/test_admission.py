"""Who gets in, over real sockets with real TLS (architecture, Identity)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import grpc
import grpc.aio
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from console.authority import key_pem
from sgfusion.errors import IdentityError, SGFusionError, UnavailableError, UnprovenError
from sgfusion.wire.channel import Keys, open_channel, start_server
from sgfusion.wire.identity import ALLOWED, METADATA, Identity, caller, require_device, require_edge_of
from sgfusion.wire.status import Refusals, from_rpc_error
from tests.cluster.keys import CLOUD, DAY, OPERATOR, Issuer, dialled, run_async, said, serving
from tests.cluster.rpcs import BY_NAME, RPCS, Rpc, register, register_greeters

EDGE = Identity("edge", "lublin")
DEVICE = Identity("device", "u17")
EVERYBODY = (CLOUD, EDGE, DEVICE, OPERATOR, Identity("monitor"))
ISSUER = Issuer()
ENROL = BY_NAME["Enrol"]


def odd_keys(names: Sequence[x509.GeneralName], uses: list[x509.ObjectIdentifier] | None = None) -> Keys:
    """A certificate of the right CA with whatever names, for whatever uses; by default for all."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "odd")])
    issuer = ISSUER.authority.certificate.subject
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - DAY).not_valid_after(now + DAY)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if uses:
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    certificate = builder.sign(ISSUER.authority.key, hashes.SHA256())
    return Keys(ISSUER.ca, certificate.public_bytes(Encoding.PEM), key_pem(key))


def foreign_keys() -> Keys:
    leaf = trustme.CA().issue_cert(EDGE.server_name)
    return Keys(ISSUER.ca, leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes())


async def refused(rpc: Rpc, channel: grpc.aio.Channel) -> SGFusionError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await rpc.call(channel)
    return from_rpc_error(raised.value)


def enrolling(me: Identity, keys: Keys | None, *, server: Keys | None = None, name: Identity = CLOUD) -> Any:
    """What an Enrol comes to: the answer, or the error; and what the server has counted."""

    async def scene() -> tuple[Any, dict[str, int]]:
        refusals = Refusals()
        async with (
            serving(register_greeters, keys=server or ISSUER.keys(CLOUD), refusals=refusals) as address,
            dialled(address, me=me, keys=keys, server=name) as channel,
        ):
            try:
                return await ENROL.call(channel), refusals.counts()
            except grpc.aio.AioRpcError as error:
                return from_rpc_error(error), refusals.counts()

    return run_async(scene())


@pytest.mark.parametrize("secure", [True, False], ids=["TLS", "insecure"])
def test_each_rpc_takes_its_roles_and_no_other(secure: bool) -> None:
    """Every row of the table, with every role."""

    async def scene() -> None:
        refusals = Refusals()
        async with AsyncExitStack() as stack:
            keys = ISSUER.keys(CLOUD) if secure else None
            address = await stack.enter_async_context(serving(register_greeters, keys=keys, refusals=refusals))
            denied = 0
            for who in EVERYBODY:
                keys = ISSUER.keys(who) if secure else None
                channel = await stack.enter_async_context(dialled(address, me=who, keys=keys))
                for rpc in RPCS:
                    if who.role in ALLOWED[rpc.path]:
                        assert await rpc.call(channel) == [b"welcome"]
                    else:
                        denied += 1
                        error = await refused(rpc, channel)
                        assert type(error) is IdentityError
                        roles = " or ".join(sorted(ALLOWED[rpc.path]))
                        assert str(error) == f"{who} may not call {rpc.path}: {roles} may"
            assert refusals.counts() == {"IdentityError": denied}
            assert denied == 5 * len(RPCS) - sum(map(len, ALLOWED.values()))

    run_async(scene(), 60)


def test_an_rpc_without_a_row_is_refused_though_somebody_serves_it() -> None:
    forgotten = Rpc("/sgfusion.v1.CloudService/Forgotten", streams_in=False, streams_out=False)
    unknown = Rpc("/sgfusion.v1.CloudService/Unknown", streams_in=False, streams_out=False)

    async def answer(_request: bytes, _context: Any) -> bytes:
        return b"welcome"

    async def scene() -> None:
        async with (
            serving(lambda server: register(server, {forgotten.path: answer}), keys=ISSUER.keys(CLOUD)) as address,
            dialled(address, me=EDGE, keys=ISSUER.keys(EDGE)) as channel,
        ):
            assert str(await refused(forgotten, channel)) == f"edge lublin may not call {forgotten.path}: nobody may"
            assert not isinstance(await refused(unknown, channel), UnavailableError)  # trying again does not help

    run_async(scene())


def test_the_right_certificate_gets_in() -> None:
    assert enrolling(EDGE, ISSUER.keys(EDGE)) == ([b"welcome"], {})


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(lambda: Issuer().keys(EDGE), id="of another CA, which it trusts"),
        pytest.param(lambda: replace(Issuer().keys(EDGE), ca=ISSUER.ca), id="of another CA"),
        pytest.param(lambda: ISSUER.keys(EDGE, begins=-9, ends=-1), id="expired"),
        pytest.param(lambda: ISSUER.keys(EDGE, begins=1, ends=9), id="not yet valid"),
        pytest.param(foreign_keys, id="of a CA that is not ours at all"),
    ],
)
def test_a_certificate_that_proves_nothing_does_not_get_in(keys: Callable[[], Keys]) -> None:
    error, counts = enrolling(EDGE, keys())
    assert isinstance(error, UnavailableError)
    assert counts == {}  # no handler and no table was reached


def test_no_certificate_does_not_get_in() -> None:
    async def scene() -> None:
        async with serving(register_greeters, keys=ISSUER.keys(CLOUD)) as address:
            options = [("grpc.ssl_target_name_override", CLOUD.server_name)]
            credentials = grpc.ssl_channel_credentials(ISSUER.ca)
            async with grpc.aio.secure_channel(address, credentials, options) as channel:
                assert type(await refused(ENROL, channel)) is UnavailableError

    run_async(scene())


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(lambda: ISSUER.keys(CLOUD, begins=-9, ends=-1), id="expired"),
        pytest.param(lambda: Issuer().keys(CLOUD), id="of another CA"),
        pytest.param(lambda: ISSUER.keys(DEVICE), id="a device's"),
        pytest.param(lambda: ISSUER.keys(EDGE), id="an edge's"),
        pytest.param(lambda: odd_keys([x509.UniformResourceIdentifier(CLOUD.uri)]), id="the right URI, not the name"),
    ],
)
def test_a_server_that_does_not_prove_to_be_the_cloud_is_not_spoken_to(server: Callable[[], Keys]) -> None:
    error, counts = enrolling(EDGE, ISSUER.keys(EDGE), server=server())
    assert type(error) is UnprovenError
    assert counts == {}


def test_a_devices_certificate_cannot_pose_as_an_edge_even_with_the_edges_name() -> None:
    """The name alone is not enough: a device's certificate is not for servers."""
    names = [x509.UniformResourceIdentifier(DEVICE.uri), x509.DNSName(EDGE.server_name)]
    for use, gets_in in ((ExtendedKeyUsageOID.CLIENT_AUTH, False), (ExtendedKeyUsageOID.SERVER_AUTH, True)):
        answer, _ = enrolling(EDGE, ISSUER.keys(EDGE), server=odd_keys(names, [use]), name=EDGE)
        assert (answer == [b"welcome"]) is gets_in
        assert (type(answer) is UnprovenError) is not gets_in


def test_a_client_verifies_which_edge_it_reached() -> None:
    async def scene() -> None:
        lublin, lodz = EDGE, Identity("edge", "Łódź")
        peer = BY_NAME["Direction"]
        async with serving(register_greeters, me=lodz, keys=ISSUER.keys(lodz)) as address:
            keys = ISSUER.keys(lublin)
            async with dialled(address, me=lublin, keys=keys, server=lodz) as channel:
                assert await peer.call(channel) == [b"welcome"]
            async with dialled(address, me=lublin, keys=keys, server=Identity("edge", "radom")) as channel:
                assert type(await refused(peer, channel)) is UnprovenError

    run_async(scene())


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([EDGE.uri, Identity("edge", "radom").uri], "has 2 URIs"),
        ([EDGE.uri, DEVICE.uri], "has 2 URIs"),
        (["https://example.org/edge/lublin"], "has 0 URIs"),
        (["spiffe://elsewhere/edge/lublin"], "has 0 URIs"),
        (["spiffe://sgfusion/edge/%6cublin"], "is no identity"),
        ([x509.DNSName(EDGE.uri)], "has 0 URIs"),  # a DNS name that is spelt like a URI is none
        ([], "has 0 URIs"),
    ],
)
def test_a_certificate_says_one_identity_or_it_says_none(names: list[str | x509.GeneralName], said: str) -> None:
    general = [x509.UniformResourceIdentifier(name) if isinstance(name, str) else name for name in names]
    error, counts = enrolling(EDGE, odd_keys(general))
    assert type(error) is IdentityError
    assert said in str(error)
    assert counts == {"IdentityError": 1}


def test_other_uris_beside_ours_do_no_harm() -> None:
    names = [x509.UniformResourceIdentifier(uri) for uri in ("https://example.org/x", EDGE.uri)]
    assert enrolling(EDGE, odd_keys(names)) == ([b"welcome"], {})


def test_metadata_says_nothing_where_there_is_tls() -> None:
    async def scene() -> None:
        async with (
            serving(register_greeters, keys=ISSUER.keys(CLOUD)) as address,
            dialled(address, me=DEVICE, keys=ISSUER.keys(DEVICE)) as channel,
        ):
            call: Any = channel.unary_unary(ENROL.path)
            with pytest.raises(grpc.aio.AioRpcError, match="device u17 may not call"):
                await call(b"", metadata=((METADATA, EDGE.uri),))

    run_async(scene())


@pytest.mark.parametrize("claims", [(), (EDGE.uri, EDGE.uri), ("edge/lublin",)], ids=["none", "two", "no identity"])
def test_without_tls_a_call_must_say_who_calls(claims: tuple[str, ...]) -> None:
    async def scene() -> None:
        async with serving(register_greeters) as address, grpc.aio.insecure_channel(address) as channel:
            call: Any = channel.unary_unary(ENROL.path)
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await call(b"", metadata=tuple((METADATA, claim) for claim in claims))
            assert type(from_rpc_error(raised.value)) is IdentityError

    run_async(scene())


@pytest.mark.parametrize("secure", [True, False], ids=["TLS", "insecure"])
def test_each_speaks_for_itself_alone(secure: bool) -> None:
    async def enrol(zone: bytes, context: Any) -> bytes:
        return require_edge_of(context, zone.decode()).uri.encode()

    async def attend(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for device in requests:
            yield require_device(context, device.decode()).uri.encode()

    attending = BY_NAME["Attend"]

    async def scene() -> None:
        def behaviours(server: grpc.aio.Server) -> None:
            register(server, {ENROL.path: enrol, attending.path: attend})

        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(serving(behaviours, keys=ISSUER.keys(CLOUD) if secure else None))
            edge, device = [
                await stack.enter_async_context(dialled(address, me=who, keys=ISSUER.keys(who) if secure else None))
                for who in (EDGE, DEVICE)
            ]
            assert await ENROL.call(edge, b"lublin") == [EDGE.uri.encode()]
            assert await attending.call(device, b"u17") == [DEVICE.uri.encode()]
            with pytest.raises(grpc.aio.AioRpcError, match="edge lublin may not speak for edge radom") as raised:
                await ENROL.call(edge, b"radom")
            assert type(from_rpc_error(raised.value)) is IdentityError
            with pytest.raises(grpc.aio.AioRpcError, match="device u17 may not speak for device u18") as raised:
                await attending.call(device, b"u18")
            assert type(from_rpc_error(raised.value)) is IdentityError

    run_async(scene())


def test_an_edge_is_no_device_of_the_same_name() -> None:
    async def enrol(_request: bytes, context: Any) -> bytes:
        require_device(context, "lublin")
        return b"welcome"

    async def scene() -> None:
        async with (
            serving(lambda server: register(server, {ENROL.path: enrol})) as address,
            dialled(address, me=EDGE) as channel,
        ):
            assert "edge lublin may not speak for device lublin" in str(await refused(ENROL, channel))

    run_async(scene())


@pytest.mark.parametrize("name", ["lublin", "Łódź / 1", "a\nb", "%41"])
def test_a_handler_sees_the_name_as_it_is(name: str) -> None:
    seen: list[Identity] = []

    async def enrol(_request: bytes, context: Any) -> bytes:
        seen.append(caller(context))
        return b""

    async def scene() -> None:
        me = Identity("edge", name)
        for keys, mine in ((ISSUER.keys(CLOUD), ISSUER.keys(me)), (None, None)):
            async with (
                serving(lambda server: register(server, {ENROL.path: enrol}), keys=keys) as address,
                dialled(address, me=me, keys=mine) as channel,
            ):
                await ENROL.call(channel)

    run_async(scene())
    assert seen == [Identity("edge", name)] * 2


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "example.org:7400", "10.0.0.1:7400", "192.168.1.1:7400"])
def test_without_certificates_nothing_leaves_the_machine(address: str) -> None:
    async def scene() -> None:
        with pytest.raises(IdentityError, match=r"listens on loopback addresses alone.*sgfusion certs"):
            await start_server(register_greeters, address, me=CLOUD, keys=None, refusals=Refusals())
        with pytest.raises(IdentityError, match=r"dials loopback addresses alone.*sgfusion certs"):
            open_channel(address, server=CLOUD, me=EDGE, keys=None)

    run_async(scene())


def test_plain_text_to_a_tls_port_and_tls_to_a_plain_port_get_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with serving(register_greeters, keys=ISSUER.keys(CLOUD)) as address, dialled(address, me=EDGE) as channel:
            assert type(await refused(ENROL, channel)) is UnavailableError
        async with serving(register_greeters) as address, dialled(address, me=EDGE, keys=ISSUER.keys(EDGE)) as channel:
            assert type(await refused(ENROL, channel)) is UnavailableError

    with caplog.at_level(logging.INFO, "sgfusion"):
        run_async(scene())
    assert not said(caplog)


@pytest.mark.parametrize("secure", [True, False], ids=["TLS", "insecure"])
def test_garbage_on_the_socket_does_not_touch_other_streams(secure: bool) -> None:
    attending = BY_NAME["Attend"]

    async def attend(requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request

    async def throw(address: str, garbage: bytes) -> None:
        host, port = address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(garbage)
            await writer.drain()
            await asyncio.wait_for(reader.read(), 1)
        except (OSError, TimeoutError):
            pass  # it hung up, or waits for more: both are its right
        finally:
            writer.close()

    async def scene() -> None:
        keys = ISSUER.keys(CLOUD) if secure else None
        async with (
            serving(lambda server: register(server, {attending.path: attend}), keys=keys) as address,
            dialled(address, me=DEVICE, keys=ISSUER.keys(DEVICE) if secure else None) as channel,
        ):
            call: Any = channel.stream_stream(attending.path)()
            preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            for number, garbage in enumerate(
                (b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", preface + b"\xff" * 5_000, b"\x16\x03\x01\xff\xff" * 2_000)
            ):
                await throw(address, garbage)
                await call.write(b"%d" % number)
                assert await call.read() == b"%d" % number
            await call.done_writing()
            assert await call.read() == grpc.aio.EOF

    run_async(scene(), 40)
