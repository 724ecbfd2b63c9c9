"""One measured system: a server process and client processes with many devices each, alive between its turns."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import IO, Self

ROOT = Path(__file__).parents[2]
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_LOG_LEVEL": "ERROR",
    "GRPC_VERBOSITY": "ERROR",
    "PYTHONWARNINGS": "ignore",
}
LAST_WORDS = 2000


@dataclass(frozen=True)
class Layout:
    """Who takes part in a round, and how much is sent each way."""

    devices: int = 64
    processes: int = 4
    weights: int = 25_000

    def shares(self) -> list[tuple[int, int]]:
        """The first device and the number of devices of each client process."""
        each, more = divmod(self.devices, self.processes)
        starts = [number * each + min(number, more) for number in range(self.processes + 1)]
        return [(first, end - first) for first, end in pairwise(starts) if end > first]


class Side:
    """Started on entry, ended on exit. `program` is the command up to the options that all systems have."""

    def __init__(self, name: str, program: Sequence[str], layout: Layout, certs: Path | None = None) -> None:
        self.name = name
        self._program = list(program)
        self._layout = layout
        self._certs = [] if certs is None else ["--certs", str(certs)]
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        try:
            self._server = self._start(self._layout.devices)
            address = self._line()
            for first, count in self._layout.shares():
                self._start(count, "--attend", address, "--first", str(first))
            if (said := self._line()) != "ready":
                raise RuntimeError(f"{self.name}: its server says {said!r} in place of being ready")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def rounds(self, count: int) -> list[float]:
        """The seconds of so many rounds, one after the other."""
        _pipe(self._server.stdin).write(f"{count}\n")
        _pipe(self._server.stdin).flush()
        seconds: list[float] = json.loads(self._line())
        return seconds

    def _start(self, devices: int, *more: str) -> subprocess.Popen[str]:
        size = ["--devices", str(devices), "--weights", str(self._layout.weights)]
        process = subprocess.Popen(  # noqa: S603 (ourselves, or a folder of our own)
            [*self._program, *size, *self._certs, *more],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if not more else subprocess.DEVNULL,
            stderr=subprocess.PIPE if not more else subprocess.DEVNULL,
            text=True,
            env={**os.environ, **QUIET},
        )
        self._processes.append(process)
        return process

    def _line(self) -> str:
        line = _pipe(self._server.stdout).readline()
        if not line:
            self._server.wait(10)
            raise RuntimeError(f"{self.name}: its server has ended: {_pipe(self._server.stderr).read()[-LAST_WORDS:]}")
        return line.strip()

    def _end(self) -> None:
        for process in reversed(self._processes):
            _pipe(process.stdin).close()
        for process in reversed(self._processes):
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def ours(layout: Layout, certs: Path | None = None) -> Side:
    """Our edge and devices."""
    return Side("ours", [sys.executable, "-m", "benchmarks.noop.ours"], layout, certs)


def plain(layout: Layout, certs: Path | None = None) -> Side:
    """Plain streams."""
    return Side("plain gRPC", [sys.executable, "-m", "benchmarks.noop.plain"], layout, certs)


def flower(layout: Layout, python: Path) -> Side:
    """Flower, by the interpreter of the virtual environment that has it."""
    return Side("Flower", [str(python), str(Path(__file__).with_name("flower.py"))], layout)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RuntimeError("the process was started without this pipe")
    return pipe
