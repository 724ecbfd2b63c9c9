"""What every service process has in common."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sgfusion.errors import InputError
from sgfusion.wire.service import PARENT, announce, announced, retract, until_stopped

ROOT = Path(__file__).parents[3]
WAITS = """
import asyncio
from sgfusion.wire.service import until_stopped
async def main():
    print("ready", flush=True)
    print(await until_stopped(), flush=True)
asyncio.run(main())
"""


def started(**environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WAITS], cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_and_handlers_are_those_of_before(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    async def killed() -> str:
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), number)
        return await asyncio.wait_for(until_stopped(), 10)

    assert asyncio.run(killed()) == number.name
    assert signal.getsignal(number) is before


def test_a_service_ends_with_the_process_that_started_it() -> None:
    starter = f"""
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {WAITS!r}], env={{**os.environ, "SGFUSION_PARENT": str(os.getpid())}})
print(child.pid, flush=True)
child.wait()
"""
    parent = subprocess.Popen([sys.executable, "-c", starter], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    lines = {parent.stdout.readline().strip() for _ in range(2)}  # who of the two speaks first is chance
    assert "ready" in lines
    parent.kill()
    rest = parent.stdout.read()  # until the child, which has the same stdout, is gone too
    assert rest.strip() == f"its parent, process {parent.pid}, is gone"
    parent.wait()
    parent.stdout.close()


def test_a_service_whose_parent_is_gone_already_ends_at_once() -> None:
    with started(**{PARENT: "1073741824"}) as process:
        out, _ = process.communicate(timeout=60)
    assert out == "ready\nits parent, process 1073741824, is gone\n"


def test_without_a_parent_it_stays() -> None:
    with started(**{PARENT: ""}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.5)  # longer than one look
        assert process.poll() is None
        process.terminate()
        assert process.communicate(timeout=60)[0] == "SIGTERM\n"


def test_a_parent_that_is_no_process_id_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PARENT, "me")
    with pytest.raises(InputError, match="SGFUSION_PARENT = 'me'"):
        asyncio.run(until_stopped())


def test_an_address_is_announced_and_retracted(tmp_path: Path) -> None:
    assert announced(tmp_path) is None
    announce(tmp_path, "127.0.0.1:7070")
    assert (tmp_path / "address").read_text() == "127.0.0.1:7070\n"
    assert announced(tmp_path) == "127.0.0.1:7070"
    retract(tmp_path)
    assert announced(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
