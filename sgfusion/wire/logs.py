"""The log of a service: the standard library's loggers, which all code and all libraries use, through one formatter.

::

    SGFUSION_LOG        text, for people (the default); json, one object a line (what the images set)
    SGFUSION_LOG_LEVEL  DEBUG, INFO (the default), WARNING or ERROR: from which on our own events are told

What is true of a whole process (its tier, its zone) is said once, to `setup_logging`; what is true of some work (its
round, its request) by `fields` around it, or by `extra` of one event, which counts most.
"""

import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Literal, TextIO, TypeAlias, get_args

import structlog
from structlog.typing import EventDict, Processor

from sgfusion.errors import InputError
from sgfusion.wire.log_lines import FIELDS, LEVELS, cut, first_words, json_line, text_line, trace_of

Format: TypeAlias = Literal["text", "json"]

FORMAT = "SGFUSION_LOG"
LEVEL = "SGFUSION_LOG_LEVEL"
OURS = "sgfusion"
"""Above the loggers of all tiers."""
_NATIVE = "GRPC_VERBOSITY"
_log = logging.getLogger(OURS)


class _Handler(logging.StreamHandler[TextIO]):
    """Ours: set up anew, it takes the place of an earlier one and of no other."""

    form: Format = "text"

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        """The standard one prints what the event was made from, whatever that is."""
        error = sys.exc_info()[1]
        if not isinstance(error, BrokenPipeError) and record.name != f"{OURS}.log":
            logging.getLogger(f"{OURS}.log").error(
                "a line of %s, %s:%d, is lost: %s", record.name, record.module, record.lineno, type(error).__name__
            )


def setup_logging(name: str, *, stream: TextIO | None = None, **process: str) -> logging.Logger:
    """The logger of a service (`sgfusion.cloud`); from now on all that the process says is a line on stderr.

    `process` are fields of every event, as `zone`.
    """
    form = log_format()
    handler = _Handler(stream)
    handler.form = form
    process = {"tier": name.removeprefix(f"{OURS}."), **process}
    handler.setFormatter(_formatter(form, handler.stream, process))
    root = logging.getLogger()
    for before in [found for found in root.handlers if isinstance(found, _Handler)]:
        root.removeHandler(before)
    root.addHandler(handler)  # others' events from WARNING on: at DEBUG numba alone says megabytes
    _log.setLevel(log_level())
    _log.propagate = True
    if form == "json":
        os.environ.setdefault(_NATIVE, "NONE")  # gRPC's core writes lines of its own past Python
    _hear_the_rest()
    return logging.getLogger(name)


def fields(**values: Any) -> AbstractContextManager[object]:
    """Events of this task, and of tasks that it starts, have these fields while the context lasts."""
    return structlog.contextvars.bound_contextvars(**values)


@contextmanager
def timed(log: logging.Logger, words: str, *arguments: object) -> Iterator[None]:
    """Tell at DEBUG that some work begins, and how long it took, whatever became of it."""
    if not log.isEnabledFor(logging.DEBUG):
        yield
        return
    log.debug(f"{words} begins", *arguments)
    began, end = time.monotonic(), "done"
    try:
        yield
    except BaseException as error:
        end = f"ended by {type(error).__name__}"
        raise
    finally:
        log.debug(f"{words} is {end} after %.1f ms", *arguments, 1000 * (time.monotonic() - began))


def log_format(environment: Mapping[str, str] = os.environ) -> Format:
    """What the environment asks for."""
    said = environment.get(FORMAT) or "text"
    for form in get_args(Format):
        if said == form:
            return form  # type: ignore[no-any-return]
    raise InputError(f"{FORMAT} = {said!r}: choose {' or '.join(get_args(Format))}")


def log_level(environment: Mapping[str, str] = os.environ) -> int:
    """From which level on our own events are told."""
    said = environment.get(LEVEL) or "INFO"
    if said.upper() not in LEVELS[:-1]:
        raise InputError(f"{LEVEL} = {said!r}: choose one of {', '.join(LEVELS[:-1])}")
    return logging.getLevelNamesMapping()[said.upper()]


def is_logging() -> Format | None:
    """Whether `setup_logging` was called in this process, and what its log is like."""
    return next((found.form for found in logging.getLogger().handlers if isinstance(found, _Handler)), None)


def _formatter(form: Format, stream: TextIO, process: Mapping[str, str]) -> logging.Formatter:
    def event(_logger: object, _method: str, found: EventDict) -> EventDict:
        return _event(found, process)

    colour = form == "text" and stream.isatty() and not os.environ.get("NO_COLOR")
    ascii_only = (getattr(stream, "encoding", None) or "").lower().replace("-", "") != "utf8"

    def rendered(_logger: object, _method: str, found: EventDict) -> str:
        return json_line(found, ascii_only=ascii_only) if form == "json" else text_line(found, colour=colour)

    chain: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.ExtraAdder(FIELDS),
    ]
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=chain, processors=[event, rendered])


def _event(found: EventDict, process: Mapping[str, str]) -> EventDict:
    """What a line says, in its order."""
    record: logging.LogRecord = found["_record"]
    said = str(found["event"])
    known = {**process, **{key: found[key] for key in FIELDS if found.get(key) not in (None, "")}}
    event: EventDict = {
        "time": _when(record),
        "level": record.levelname,
        "logger": record.name,
        **{key: known[key] for key in FIELDS if key in known},
        "message": cut(said) if record.name.partition(".")[0] == OURS else first_words(said),
    }
    if (info := found.get("exc_info")) and info[1] is not None:
        event["exception"] = trace_of(info[1])
    return event


def _when(record: logging.LogRecord) -> str:
    """In UTC, to the millisecond."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _hear_the_rest() -> None:
    """Warnings and what ends a thread or the process are events too: Python's own words would repeat an error's."""
    warnings.showwarning = _warned
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_a_thread


def _warned(  # noqa: PLR0917 (as Python calls it)
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Where it was and of which kind: its words are a task's or a library's, and may hold data."""
    del message, file, line
    logging.getLogger("py.warnings").warning("%s:%d: %s", filename, lineno, category.__name__)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    _log.critical("ends: %s, which nobody expected", kind.__name__, exc_info=(kind, error, trace))


def _uncaught_in_a_thread(found: "threading.ExceptHookArgs") -> None:
    if found.exc_value is not None:
        _log.error("a thread has ended: %s", found.exc_type.__name__, exc_info=found.exc_value)
