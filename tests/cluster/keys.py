"""Keys for identities, and servers with handlers for real RPCs, for tests of everything that speaks."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import grpc.aio
import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from console.authority import Authority, issue, make_authority
from console.certs import make_certificates
from sgfusion.wire.channel import Keys, open_channel, start_server
from sgfusion.wire.identity import Identity, folder_of
from sgfusion.wire.status import Refusals

T = TypeVar("T")
CLOUD = Identity("cloud")
OPERATOR = Identity("operator")
DAY = timedelta(days=1)
PATIENCE = 20.0
"""Seconds that a test on sockets may take, on a machine with much else to do."""


def run_async(work: Coroutine[Any, Any, T], patience: float = PATIENCE) -> T:
    """Run a test's coroutine, for so long at most."""

    async def bounded() -> T:
        async with asyncio.timeout(patience):
            return await work

    return asyncio.run(bounded())


def keys_in(folder: Path, identities: Iterable[Identity]) -> dict[Identity, Keys]:
    """Keys of the identities, as `sgfusion certs` makes them, in that folder."""
    wanted = tuple(identities)
    make_certificates(folder, wanted, days=365, renew=False, now=datetime.now(UTC))
    return {identity: Keys.load(folder_of(folder, identity)) for identity in wanted}


@dataclass(frozen=True)
class Issuer:
    """A CA in memory, for keys that are made in a moment; times are days from now."""

    authority: Authority = field(
        default_factory=lambda: make_authority(begins=datetime.now(UTC) - 99 * DAY, ends=datetime.now(UTC) + 99 * DAY)
    )

    @property
    def ca(self) -> bytes:
        return self.authority.certificate.public_bytes(Encoding.PEM)

    def keys(self, identity: Identity, *, begins: float = -1, ends: float = 9) -> Keys:
        now = datetime.now(UTC)
        certificate, key = issue(self.authority, identity, begins=now + begins * DAY, ends=now + ends * DAY)
        return Keys(self.ca, certificate, key)


@asynccontextmanager
async def serving(
    register: Callable[[grpc.aio.Server], None],
    *,
    me: Identity = CLOUD,
    keys: Keys | None = None,
    refusals: Refusals | None = None,
) -> AsyncIterator[str]:
    """A server on a free port of the loopback device; gives its address."""
    server, address = await start_server(
        register, "127.0.0.1:0", me=me, keys=keys, refusals=Refusals() if refusals is None else refusals
    )
    try:
        yield address
    finally:
        await server.stop(None)


@asynccontextmanager
async def dialled(
    address: str, *, me: Identity, keys: Keys | None = None, server: Identity = CLOUD
) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to it, closed in the end."""
    async with open_channel(address, server=server, me=me, keys=keys) as channel:
        yield channel


def said(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What our services logged: gRPC's poller may still speak, by asyncio, of a loop that an earlier test closed."""
    return [record for record in caplog.records if record.name.startswith("sgfusion")]
