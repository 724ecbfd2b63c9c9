"""Changes to disk, in order and in batches: what came while one batch was being written is the next one."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from cloud.state import Change
from cloud.store import Store
from sgfusion.errors import StoreError, UnavailableError

T = TypeVar("T")


class Journal:
    """One thread for the store. An fsync then costs a whole batch, not each zone's report, and never the event loop."""

    def __init__(
        self,
        store: Store,
        written: Callable[[list[Change]], None],
        timed: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._store = store
        self._written = written
        self._timed = timed
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._pending: list[tuple[Change, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._failure: StoreError | None = None

    @property
    def waiting(self) -> int:
        """Changes that no batch has taken up yet."""
        return len(self._pending)

    @property
    def committed(self) -> float:
        """When the store last had something on disk, in seconds since 1970."""
        return self._store.committed

    async def write(self, change: Change) -> None:
        """Return when the change, and all before it, are on disk and `written` has been told."""
        if self._failure is not None:
            raise self._unavailable()
        done = asyncio.get_running_loop().create_future()
        self._pending.append((change, done))
        self._wake.set()
        await asyncio.shield(done)

    async def read(self, work: Callable[[Store], T]) -> T:
        """What `work` reads from the store."""
        return await asyncio.get_running_loop().run_in_executor(self._disk, work, self._store)

    async def run(self) -> None:
        """Write for ever. A store that fails ends the cloud: nothing could be acknowledged any more."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch, self._pending = self._pending, []
            try:
                await self._save([change for change, _ in batch if change.to_store])
            except StoreError as error:
                self._failure = error
                for _, done in [*batch, *self._pending]:
                    done.set_exception(self._unavailable())
                    done.exception()  # seen: who waited may have gone
                raise
            self._written([change for change, _ in batch])
            for _, done in batch:
                done.set_result(None)

    def close(self) -> None:
        """Let the thread end when it has written what it has."""
        self._disk.shutdown(wait=True)

    async def _save(self, changes: list[Change]) -> None:
        if changes:
            with self._timed():
                await asyncio.get_running_loop().run_in_executor(self._disk, self._store.save, changes)

    def _unavailable(self) -> UnavailableError:
        return UnavailableError(f"the cloud cannot write: {self._failure}")
