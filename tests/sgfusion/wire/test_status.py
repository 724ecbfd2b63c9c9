"""The table of errors and statuses; what really crosses a socket is in test_boundary.py."""

import inspect
from urllib.parse import quote

import grpc
import grpc.aio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion import errors
from sgfusion.wire.status import CODES, METADATA, Refusals, from_rpc_error, metadata_of, to_status, translated

OURS: list[type[errors.SGFusionError]] = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.SGFusionError)
]


def rpc_error(code: grpc.StatusCode, details: str | None = "said", *trailing: tuple[str, str]) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details)


@pytest.mark.parametrize("kind", OURS)
def test_every_error_of_ours_comes_back_as_it_was(kind: type[errors.SGFusionError]) -> None:
    error = kind("zone 7 of 6")
    code, message = to_status(error)
    back = from_rpc_error(rpc_error(code, message, *metadata_of(error)))
    assert type(back) is kind
    assert str(back) == "zone 7 of 6"
    assert code not in {grpc.StatusCode.OK, grpc.StatusCode.INTERNAL, grpc.StatusCode.CANCELLED}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InputError("x"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.TensorError("x"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.ProtocolError("x"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.IdentityError("x"), grpc.StatusCode.PERMISSION_DENIED),
        (errors.ContractError("x"), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.UnknownAskError("x"), grpc.StatusCode.NOT_FOUND),
        (errors.UnavailableError("x"), grpc.StatusCode.UNAVAILABLE),
        (errors.DeadlineError("x"), grpc.StatusCode.DEADLINE_EXCEEDED),
        (errors.BudgetExceededError("x"), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.SGFusionError("x"), grpc.StatusCode.UNKNOWN),
    ],
)
def test_codes_are_those_that_other_tools_expect(error: errors.SGFusionError, code: grpc.StatusCode) -> None:
    assert to_status(error) == (code, "x")


def test_what_a_message_repeats_of_data_is_not_sent() -> None:
    """Who asked logs what it hears."""
    assert to_status(errors.DataError("row 3 has 'angry': give numbers", shows="'angry'"))[1] == (
        "row 3 has …: give numbers"
    )


def test_every_class_right_under_the_root_has_a_row() -> None:
    assert set(CODES) == {errors.SGFusionError, *errors.SGFusionError.__subclasses__()}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, errors.UnavailableError),
        (grpc.StatusCode.CANCELLED, errors.UnavailableError),
        (grpc.StatusCode.INTERNAL, errors.UnavailableError),
        (grpc.StatusCode.UNKNOWN, errors.UnavailableError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.DeadlineError),
        (grpc.StatusCode.UNIMPLEMENTED, errors.ProtocolError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.ProtocolError),
        (grpc.StatusCode.UNAUTHENTICATED, errors.IdentityError),
    ],
)
def test_what_the_transport_says_is_one_of_ours_too(code: grpc.StatusCode, kind: type[errors.SGFusionError]) -> None:
    error = from_rpc_error(rpc_error(code))
    assert type(error) is kind
    assert str(error) == "said"


def test_a_class_that_this_side_does_not_know_is_told_by_the_code() -> None:
    newer = from_rpc_error(rpc_error(grpc.StatusCode.INVALID_ARGUMENT, "said", (METADATA, "NewerError")))
    assert type(newer) is errors.InputError
    not_ours = from_rpc_error(rpc_error(grpc.StatusCode.UNAVAILABLE, "said", (METADATA, "inspect")))
    assert type(not_ours) is errors.UnavailableError


def test_a_subclass_made_elsewhere_travels_as_the_nearest_of_ours() -> None:
    class Local(errors.TensorError):
        pass

    assert metadata_of(Local("x")) == ((METADATA, "TensorError"),)
    assert to_status(Local("x"))[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_no_message_is_said_to_be_none() -> None:
    assert "UNAVAILABLE" in str(from_rpc_error(rpc_error(grpc.StatusCode.UNAVAILABLE, None)))


def test_a_long_message_is_cut() -> None:
    _, whole = to_status(errors.InputError("a" * 1_000))
    _, cut = to_status(errors.InputError("a" * 1_001))
    assert whole == "a" * 1_000
    assert cut == "a" * 999 + "…"


@given(st.text(max_size=1_500))
def test_any_message_fits_into_a_header(text: str) -> None:
    _, message = to_status(errors.InputError(text))
    assert len(message) <= 1_000
    assert len(quote(message, safe=" ")) <= 6_000


def test_the_heaviest_message_fits_too() -> None:
    _, message = to_status(errors.InputError("\U0001f5fa" * 1_000 + "\ud800"))
    assert 300 < len(message) <= 500
    assert message.endswith("…")
    assert to_status(errors.InputError("a\ud800b"))[1] == "a?b"


def test_translated_leaves_other_errors_alone() -> None:
    with pytest.raises(errors.DeadlineError, match=r"^said$"), translated():
        raise rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED)
    with pytest.raises(KeyError), translated():
        raise KeyError


def test_refusals_are_counted_by_reason() -> None:
    refusals = Refusals()
    assert refusals.counts() == {}
    for reason in ("TensorError", "IdentityError", "TensorError"):
        refusals.count(reason)
    assert refusals.counts() == {"IdentityError": 1, "TensorError": 2}
    refusals.counts()["TensorError"] = 9
    assert refusals.counts()["TensorError"] == 2


def test_nobody_there_is_said_with_the_address_and_not_in_grpcs_words() -> None:
    said = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:7079: Failed to connect: refused"
    back = from_rpc_error(rpc_error(grpc.StatusCode.UNAVAILABLE, said))
    assert type(back) is errors.UnavailableError
    assert str(back) == (
        "no connection to 127.0.0.1:7079 (Failed to connect: refused): is the service up, and is that its address?"
    )


@pytest.mark.parametrize(
    ("grpcs", "ours"),
    [
        ("unable to get local issuer certificate: 20: certificate", "its certificate is of another CA"),
        ("certificate has expired: 10", "its certificate has ended"),
        ("certificate is not yet valid: 9", "this host's clock is behind"),
        ("unsupported certificate purpose: OK", "no certificate of a server"),
        ("UNAUTHENTICATED: Hostname Verification Check failed.", "who answers there is somebody else of this run"),
    ],
)
def test_who_does_not_prove_to_be_whom_we_dialled_is_there_and_that_is_said(grpcs: str, ours: str) -> None:
    said = (
        f"failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:7079: Ssl handshake failed: {grpcs}"
    )
    back = from_rpc_error(rpc_error(grpc.StatusCode.UNAVAILABLE, said))
    assert type(back) is errors.UnprovenError
    assert str(back).startswith("no connection to 127.0.0.1:7079: ")
    assert ours in str(back)
    assert "is the service up" not in str(back)


@pytest.mark.parametrize(
    "said",
    [
        "Stream removed (ping timeout)",
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:7079: Handshake read failed"
        " (Endpoint closing)",
    ],
)
def test_a_connection_on_which_nothing_comes_back_is_told_in_plain_words(said: str) -> None:
    back = from_rpc_error(rpc_error(grpc.StatusCode.UNAVAILABLE, said))
    assert type(back) is errors.SilentError
    where = "127.0.0.1:7079" if "7079" in said else "there"
    assert str(back) == f"nobody answers at {where}: its process may be frozen, or its host be gone"
