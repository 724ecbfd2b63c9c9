"""One event, one line: nobody's words begin another, and errors' words are told only if we chose them."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion.errors import DataError, SGFusionError
from sgfusion.wire.log_lines import LONGEST, cut, escaped, first_words, json_line, text_line, trace_of

EVENT = {
    "time": "2026-11-12T10:11:12.123Z",
    "level": "WARNING",
    "logger": "sgfusion.edge",
    "tier": "edge",
    "zone": "lublin",
    "round": 12,
    "request": "lublin.12",
    "message": "zone lublin: plan 1",
}
LABEL = 171.25
FORGED = "calm\n2026-11-12T10:11:12.123Z CRITICAL sgfusion.edge: all is lost\r\x1b[2J\x9b31m\u2028\u202e\x00\ud800 é ل"


def test_a_line_for_people_has_columns_and_ends_with_its_request() -> None:
    assert text_line(EVENT) == "2026-11-12T10:11:12.123Z WARNING  sgfusion.edge: zone lublin: plan 1 [lublin.12]"
    calm = {**EVENT, "level": "INFO", "request": ""}
    assert text_line(calm) == "2026-11-12T10:11:12.123Z INFO     sgfusion.edge: zone lublin: plan 1"


def test_colours_are_for_terminals() -> None:
    coloured = text_line(EVENT, colour=True)
    assert "\x1b[33mWARNING " in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == text_line(EVENT)


def test_a_line_of_json_is_the_event_in_its_order() -> None:
    line = json_line(EVENT)
    assert list(json.loads(line).items()) == list(EVENT.items())
    assert line.startswith('{"time": "2026-11-12T10:11:12.123Z", "level": "WARNING", ')


def test_nobody_forges_a_line() -> None:
    text = text_line({**EVENT, "message": FORGED, "logger": "a\nb", "request": "c\nd"})
    assert len(text.splitlines()) == 1
    assert r"calm\n2026-11-12T10:11:12.123Z CRITICAL sgfusion.edge: all is lost\r\u001b[2J\u009b31m" in text
    assert r"\u2028\u202e\u0000\ud800 é ل" in text
    line = json_line({**EVENT, "message": FORGED})
    assert len(line.splitlines()) == 1
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]", line)
    assert json.loads(line)["message"] == FORGED, "and nothing is lost of it"


@given(st.text(st.characters()), st.booleans())
def test_whatever_is_said_is_one_line_that_can_be_written(said: str, ascii_only: bool) -> None:
    line = json_line({"message": said}, ascii_only=ascii_only)
    assert len(line.splitlines()) == 1
    line.encode("ascii" if ascii_only else "utf-8")
    assert json.loads(line)["message"] == json.loads(json.dumps(said))
    assert len(("|" + escaped(said)).splitlines()) == 1
    escaped(said).encode()


def an_error() -> BaseException:
    try:
        try:
            raise ValueError(f"label {LABEL} of u3\nis odd")
        except ValueError as error:
            raise DataError("device 'u3' has odd samples\nor none") from error
    except DataError as error:
        return error


def test_a_trace_says_where_and_which_and_repeats_no_words_but_ours() -> None:
    trace = trace_of(an_error())
    assert "171.25" not in trace
    lines = trace.splitlines()
    assert lines[-1] == r"sgfusion.errors.DataError: device 'u3' has odd samples\nor none"
    assert "ValueError" in lines
    assert lines[lines.index("ValueError") + 1] == "which led to:"
    assert any("test_log_lines.py" in line and "in an_error" in line for line in lines)


def test_a_trace_in_a_text_log_begins_no_line_of_its_own() -> None:
    text = text_line({**EVENT, "exception": trace_of(an_error())})
    head, *rest = text.splitlines()
    assert head == text_line(EVENT)
    assert all(line.startswith("    | ") for line in rest)
    json.loads(json_line({**EVENT, "exception": trace_of(an_error())}))


def test_a_trace_ends() -> None:
    first, second = SGFusionError("one"), SGFusionError("two")
    first.__cause__, second.__cause__ = second, first
    assert trace_of(first).count("SGFusionError") == 2
    group = ExceptionGroup("of 171.25", [ValueError("171.25"), first])
    assert trace_of(group).splitlines()[:2] == ["ExceptionGroup", "  ValueError"]
    assert "171.25" not in trace_of(group)

    def deep(left: int) -> None:
        if left:
            deep(left - 1)
        raise OSError(2, "No such file", "/etc/absent")

    with pytest.raises(OSError, match="absent") as found:
        deep(90)
    assert len(trace_of(found.value).splitlines()) < 70
    assert trace_of(found.value).endswith("FileNotFoundError: [Errno 2] No such file: '/etc/absent'")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(f"labels {LABEL}"), "OSError"),
        (OSError(28, LABEL), "OSError"),
        (ConnectionResetError(), "ConnectionResetError"),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (OSError(18, "Invalid link", "a", None, "b"), "OSError: [Errno 18] Invalid link: 'a' -> 'b'"),
        (ImportError(f"labels {LABEL}"), "ImportError"),
        (ModuleNotFoundError("No module named 'numba'", name="numba"), "ModuleNotFoundError: No module named 'numba'"),
    ],
)
def test_of_an_error_of_the_system_its_reason_and_its_file_are_told(error: Exception, told: str) -> None:
    assert trace_of(error) == told


def test_a_librarys_words_are_told_to_the_end_of_their_first_line_without_what_a_task_gave() -> None:
    assert first_words("Task exception was never retrieved\nfuture: <Task exception=ValueError('171.25')>") == (
        "Task exception was never retrieved"
    )
    assert first_words("Executing <Task result=array([171.25])> took 0.2 s") == "Executing"


def test_very_long_words_are_cut() -> None:
    assert cut("a" * LONGEST) == "a" * LONGEST
    assert cut("a" * 100_000) == "a" * (LONGEST - 1) + "…"
