"""The page of a run whose cluster has ended, while `sgfusion up` still works: where it was, from the results folder.

Who has it open sees the run's end: a browser takes up the stream by itself, and is told to fetch everything anew. When
zones have trained alone, or are no longer to, it is told what came out, for then nobody is there to ask.
"""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from cloud.page.folder import FinishedRun
from cloud.page.server import Page, Place, take_place

START_WITHIN = 20.0
"""Seconds for the page to serve; its place is taken before."""


@contextmanager
def still_shown(
    folder: Path, address: str | None, screen: Console, *, state: Path, certs: Path | None, asked: bool = True
) -> Iterator[str | None]:
    """Serve the results in the folder at `host:port`, or at the usual place; yields where. Whom it lets in is said by
    the cloud's keys and the token in its state. If it cannot be served, the screen says why, and there is none.

    If that place was not `asked` for and somebody has taken it since, another port will do, and the screen says which.
    """
    where = None
    with ExitStack() as stack:
        try:
            source = FinishedRun(folder, comparing=True)
            stack.callback(source.close)
            place = take_place(address, state=state, certs=certs, plain=False, or_any_port=not asked)
            stack.callback(place.socket.close)
            serving = _Serving(place, source)
            stack.callback(serving.stop)
            serving.start()
            where = place.url
            if address is not None and not asked and f"//{address}/" not in where:
                moved = f"page: {where} from now on, for another program has taken {address}"
                screen.print(moved, highlight=False, markup=False, soft_wrap=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, people can do without a page
            stack.close()  # nobody waits at its door
            told = f"no page while zones train alone: {str(error) or type(error).__name__}"
            screen.print(told, highlight=False, markup=False, soft_wrap=True)
        yield where


class _Serving:
    """A page in a thread with a loop of its own: the one of this process trains."""

    def __init__(self, place: Place, source: FinishedRun) -> None:
        self._place, self._source = place, source
        self._ready: Future[None] = Future()
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="page", daemon=True)

    def start(self) -> None:
        """Returns when it serves; what hinders it is raised here."""
        self._thread.start()
        if wait([self._ready], START_WITHIN).done:  # else it is slow, and who comes waits: its socket listens
            self._ready.result()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        page = Page(self._place, self._source)
        try:
            await page.start()
            self._ready.set_result(None)
            await self._end.wait()
        finally:
            await page.stop(self._source.last())
