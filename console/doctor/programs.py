"""Other programs that are asked something, each with a deadline; none of them is left when we end.

A check that is not waited for any longer is a thread that ends with this process. What it has started would not.
"""

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import Self

UNTIL_DEAD = 0.5
"""Seconds that a killed one is waited for: who waits for a dead disk himself cannot be killed before it answers."""


class Programs:
    """Those of one examination: all that still run are killed at its end, and none begins after it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if self._lock.acquire(timeout=UNTIL_DEAD):  # else one is on a dead disk, and has not begun
            self._lock.release()
        for program in list(self._running):
            _end(program)

    def ask(self, command: Sequence[str], within: float) -> subprocess.CompletedProcess[str] | None:
        """What it says, and how it ends; None if it has not ended within so many seconds."""
        with self._lock:
            if self._over:
                return None
            program = subprocess.Popen(  # noqa: S603 (our own interpreter, and what people type)
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            self._running.add(program)
        try:
            out, error = program.communicate(timeout=within)
            return subprocess.CompletedProcess(command, program.returncode, out, error)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(program)
            self._running.discard(program)
            for pipe in (program.stdout, program.stderr):
                if pipe is not None:
                    pipe.close()


def _end(program: subprocess.Popen[str]) -> None:
    program.kill()  # nothing if it has ended
    with suppress(subprocess.TimeoutExpired):
        program.wait(UNTIL_DEAD)
