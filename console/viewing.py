"""`sgfusion view`: the page of a finished run, from its results folder."""

import asyncio
import webbrowser
from pathlib import Path

from rich.console import Console

from cloud.page.folder import FinishedRun
from cloud.page.server import Page, take_place
from console.folder_argument import refuse_absent
from console.reach import crews, state_of
from sgfusion.errors import DataError, InputError, SGFusionError
from sgfusion.wire.channel import is_loopback
from sgfusion.wire.service import PAGE, announced, until_stopped


def view(folder: Path, address: str | None, *, browser: bool, screen: Console) -> None:
    """Serve the page until Ctrl-C or SIGTERM."""
    if address is not None and not is_loopback(address):
        raise InputError(
            f"--page {address}: a finished run is shown on this machine alone. From elsewhere: ssh -L"
            " 7080:127.0.0.1:7080 HOST, and the same address there"
        )
    refuse_absent(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is a file: give the results folder of a run")
    if crews(folder):
        told = f"{folder} is being trained: {_page_of(folder)}"
        if not (folder / "summary.json").exists():
            raise InputError(told)
        screen.print(f"{told}. These are the results that are there", highlight=False, markup=False, soft_wrap=True)
    source = FinishedRun(folder)
    try:
        asyncio.run(_serve(source, folder, address, browser=browser, screen=screen))
    finally:
        source.close()


def _page_of(folder: Path) -> str:
    """Of a cluster that runs there, in words."""
    try:
        url = announced(state_of(folder) / "cloud", PAGE)
    except SGFusionError as error:  # one that starts, and has its page soon, or that has just ended
        return str(error)
    return f"its page is {url}" if url else "it has no page"


async def _serve(source: FinishedRun, folder: Path, address: str | None, *, browser: bool, screen: Console) -> None:
    place = take_place(address, state=None, certs=None, plain=False)
    page = Page(place, source)
    stopped = asyncio.create_task(until_stopped())
    await asyncio.sleep(0)  # who reads where it is may end it at once
    await page.start()
    try:
        screen.print(f"page of {folder}: {place.url}  (Ctrl-C ends it)", highlight=False, soft_wrap=True)
        if browser:
            await asyncio.to_thread(webbrowser.open, place.url)
        await stopped
        screen.print("the page is closed", highlight=False)
    finally:
        await page.stop()
