"""A service's log: one formatter for all who speak in the process, the fields of an event, settings by environment."""

import asyncio
import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from sgfusion.errors import InputError
from sgfusion.wire.logs import FORMAT, LEVEL, fields, is_logging, log_format, log_level, setup_logging, timed

LABEL = 171.25
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(FORMAT, raising=False)
    monkeypatch.delenv(LEVEL, raising=False)
    monkeypatch.setenv("GRPC_VERBOSITY", "NONE")
    root, ours = logging.getLogger(), logging.getLogger("sgfusion")
    handlers, level, hooks = list(root.handlers), ours.level, (sys.excepthook, threading.excepthook)
    shown = warnings.showwarning
    root.handlers = []
    yield
    root.handlers, ours.level = handlers, level
    sys.excepthook, threading.excepthook = hooks
    warnings.showwarning = shown


def logged(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.fixture
def out(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The log of an edge, as JSON, from DEBUG on."""
    monkeypatch.setenv(FORMAT, "json")
    monkeypatch.setenv(LEVEL, "debug")
    stream = io.StringIO()
    setup_logging("sgfusion.edge", stream=stream, zone="lublin")
    return stream


def test_a_line_says_when_how_grave_and_who(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging("sgfusion.cloud").info("zone %s joined", "lublin")
    logging.getLogger("sgfusion.cloud").debug("not shown")
    assert re.fullmatch(rf"{TIME} INFO     sgfusion\.cloud: zone lublin joined\n", capsys.readouterr().err)


def test_set_up_anew_it_says_each_thing_once() -> None:
    first, second = io.StringIO(), io.StringIO()
    setup_logging("sgfusion.cloud", stream=first)
    setup_logging("sgfusion.cloud", stream=second).warning("once")
    assert (first.getvalue(), second.getvalue().count("once")) == ("", 1)


def test_json_has_the_fields_of_the_process_of_the_work_and_of_the_event(out: io.StringIO) -> None:
    log = logging.getLogger("sgfusion.edge")
    log.info("serves")
    with fields(round=12, request="lublin.12"):
        log.debug("asks")
        log.warning("late", extra={"device": "u3", "request": "podlaskie.7"})
    log.info("ends", extra={"device": ""})
    serves, asks, late, ends = logged(out)
    assert re.fullmatch(TIME, serves.pop("time"))
    assert serves == {
        "level": "INFO",
        "logger": "sgfusion.edge",
        "tier": "edge",
        "zone": "lublin",
        "message": "serves",
    }
    assert (asks["round"], asks["request"]) == (12, "lublin.12")
    assert (late["round"], late["request"], late["device"]) == (12, "podlaskie.7", "u3")
    assert list(late) == ["time", "level", "logger", "tier", "zone", "device", "round", "request", "message"]
    assert not {"device", "round", "request"} & set(ends)


def test_tasks_inherit_fields_and_keep_them_apart(out: io.StringIO) -> None:
    log = logging.getLogger("sgfusion.edge")

    async def part(name: str) -> None:
        await asyncio.sleep(0)
        log.info("%s", name)

    async def work(name: str) -> None:
        with fields(request=name):
            await asyncio.gather(part(name), part(name))

    async def both() -> None:
        await asyncio.gather(work("a.1"), work("b.1"))

    asyncio.run(both())
    assert [event["message"] for event in logged(out)] == [event["request"] for event in logged(out)]
    assert len(logged(out)) == 4


def test_work_is_told_at_debug_with_its_duration_and_its_end(out: io.StringIO) -> None:
    log = logging.getLogger("sgfusion.edge")
    with timed(log, "round %d", 3):
        pass
    with pytest.raises(KeyError), timed(log, "round %d", 4):
        raise KeyError("171.25")
    said = [event["message"] for event in logged(out)]
    assert [re.sub(r"\d+\.\d ms", "T", words) for words in said] == [
        "round 3 begins",
        "round 3 is done after T",
        "round 4 begins",
        "round 4 is ended by KeyError after T",
    ]
    assert "171.25" not in out.getvalue()
    log.setLevel(logging.INFO)
    try:
        with timed(log, "round %d", 5):
            pass
    finally:
        log.setLevel(logging.NOTSET)
    assert "round 5" not in out.getvalue()


def test_libraries_speak_in_the_same_form_and_their_debugging_is_not_ours(out: io.StringIO) -> None:
    for name in ("grpc._cython.cygrpc", "asyncio", "uvicorn.error"):
        logging.getLogger(name).debug("chatter")
        logging.getLogger(name).error("odd\nand more")
    events = logged(out)
    assert [event["message"] for event in events] == ["odd"] * 3
    assert {event["zone"] for event in events} == {"lublin"}


def test_of_a_warning_its_place_and_its_kind_are_told_and_not_its_words(out: io.StringIO) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        setup_logging("sgfusion.edge", stream=out)  # pytest listens to warnings in a way of its own
        warnings.warn(f"odd labels: [{LABEL}]", RuntimeWarning, stacklevel=1)
    (event,) = logged(out)
    assert re.fullmatch(r".*test_logs\.py:\d+: RuntimeWarning", event["message"])
    assert (event["level"], event["logger"]) == ("WARNING", "py.warnings")
    assert "171.25" not in out.getvalue()


def test_what_a_task_of_asyncio_raised_is_told_without_its_words(out: io.StringIO) -> None:
    async def raises() -> None:
        raise ValueError(f"label {LABEL}")

    async def work() -> None:
        task = asyncio.create_task(raises())
        await asyncio.wait([task])
        del task

    asyncio.run(work())
    (event,) = logged(out)
    assert event["message"] == "Task exception was never retrieved"
    assert event["exception"].splitlines()[-1] == "ValueError"
    assert "171.25" not in out.getvalue()


def test_a_thread_that_ends_by_an_error_says_so(out: io.StringIO) -> None:
    def fails() -> None:
        raise ValueError(f"label {LABEL}")

    thread = threading.Thread(target=fails)
    thread.start()
    thread.join()
    (event,) = logged(out)
    assert (event["level"], event["message"]) == ("ERROR", "a thread has ended: ValueError")
    assert "171.25" not in out.getvalue()


def test_an_event_that_cannot_be_told_is_missed_and_nothing_of_it_printed(
    out: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.getLogger().handlers[:] = logging.getLogger().handlers[:1]  # pytest's own, which came later, would raise
    logging.getLogger("sgfusion.edge").info("%d zones", "171.25")
    (event,) = logged(out)
    assert re.fullmatch(r"a line of sgfusion\.edge, test_logs:\d+, is lost: TypeError", event["message"])
    assert capsys.readouterr().err == ""


def test_a_terminal_has_colours_unless_it_is_asked_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    setup_logging("sgfusion.cloud", stream=terminal).warning("late")
    assert "\x1b[33m" in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    setup_logging("sgfusion.cloud", stream=plain).warning("late")
    assert "\x1b" not in plain.getvalue()
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv(FORMAT, "json")
    collected = Terminal()
    setup_logging("sgfusion.cloud", stream=collected).warning("late")
    assert "\x1b" not in collected.getvalue()


def test_a_stream_that_is_not_utf8_gets_json_that_is_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORMAT, "json")
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="latin-1", errors="backslashreplace", write_through=True)
    setup_logging("sgfusion.cloud", stream=stream).info("zone %s, café", "Łódź")
    assert json.loads(raw.getvalue().decode("ascii"))["message"] == "zone Łódź, café"


def test_settings_are_refused_by_name() -> None:
    assert (log_format({}), log_format({FORMAT: ""}), log_format({FORMAT: "json"})) == ("text", "text", "json")
    assert (log_level({}), log_level({LEVEL: "warning"})) == (logging.INFO, logging.WARNING)
    with pytest.raises(InputError, match=r"SGFUSION_LOG = 'xml': choose text or json"):
        log_format({FORMAT: "xml"})
    for wrong in ("LOUD", "10", "NOTSET"):
        with pytest.raises(InputError, match=rf"SGFUSION_LOG_LEVEL = '{wrong}': choose one of DEBUG, INFO, WARNING"):
            log_level({LEVEL: wrong})


def test_a_process_knows_whether_it_logs(out: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_logging() == "json"
    monkeypatch.setenv(FORMAT, "text")
    setup_logging("sgfusion.edge", stream=out)
    assert is_logging() == "text"
    logging.getLogger().handlers.clear()
    assert is_logging() is None


SERVICE = """
import logging, sys
from sgfusion.wire.logs import setup_logging
setup_logging("sgfusion.device")
def work(labels):
    raise ValueError(f"odd labels: {labels}")
work([171.25])
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_error_that_nobody_expected_ends_the_process_without_its_words(form: str) -> None:
    environment = {**os.environ, FORMAT: form, "PYTHONPATH": os.getcwd()}  # noqa: PTH109
    command = [sys.executable, "-c", SERVICE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "171.25" not in done.stderr
    assert "ValueError" in done.stderr
    if form == "json":
        event = json.loads(done.stderr)
        assert event["message"] == "ends: ValueError, which nobody expected"
        assert "in work" in event["exception"]
