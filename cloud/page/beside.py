"""The page beside the cloud that it shows: in the same process and event loop, and without it the cloud goes on."""

import asyncio
import json
import logging
from collections.abc import Mapping
from pathlib import Path

from cloud.page.access import TOKEN_FILE
from cloud.page.live import Cloud, LiveRun
from cloud.page.picture import alone_of
from cloud.page.server import Page, Place
from sgfusion.errors import DataError, RunFileError
from sgfusion.runfile import RunFile, load_run_file
from sgfusion.same_run import differing_alone
from sgfusion.wire.service import PAGE, announce, retract

_log = logging.getLogger("sgfusion.cloud")


async def serve_page(cloud: Cloud, place: Place, state: Path, alone: Mapping[str, float]) -> None:
    """Serve it until cancelled. Where it is is in the file `page` of the state folder."""
    page: Page | None = None
    try:
        source = LiveRun(cloud, alone)
        page = Page(place, source)
        announce(state, place.url, PAGE)
        by = "" if place.access.token is None else f", by the token in {state / TOKEN_FILE}"
        _log.info("page at %s%s", place.url, by)
        await source.load()
        await page.start()
        await asyncio.get_running_loop().create_future()
    except Exception:  # noqa: BLE001 - whatever it is, people can do without a page, and zones not without a cloud
        _log.exception("the page has failed; the cloud goes on without it")
    finally:
        retract(state, PAGE)
        if page is not None:
            await page.stop()
        place.socket.close()


def known_alone(folder: Path | None, run: RunFile) -> dict[str, float]:
    """What the run's zones come to alone, by the summary of a results folder."""
    if folder is None:
        return {}
    path = folder / "summary.json"
    try:
        found = alone_of(json.loads(path.read_bytes()))
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"--alone {folder}: {path} cannot be read ({error}): give a results folder") from error
    if not found:
        raise DataError(
            f"--alone {folder}: its summary does not say what zones come to alone. Give the results of"
            " `sgfusion simulate --method sgeofl`, or of `sgfusion up`, which trains them"
        )
    try:
        differs = differing_alone(load_run_file(folder / "run.toml"), run)
    except RunFileError as error:
        raise DataError(f"--alone {folder} does not say of which run it is: {error}") from error
    if differs:
        raise DataError(
            f"--alone {folder} is of another run: {'; '.join(differs)}. Give what this run's file comes to with"
            " `sgfusion simulate --method sgeofl`"
        )
    return found
