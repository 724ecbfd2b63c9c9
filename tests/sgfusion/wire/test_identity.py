"""Names of identities, and the table of who may call what; who is let in over real sockets is in test_admission.py."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfusion.errors import IdentityError
from sgfusion.wire.identity import ALLOWED, ROLES, Identity, Role, folder_of
from tests.cluster.rpcs import RPCS

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


def test_every_rpc_of_the_protos_has_a_row_and_there_are_no_others() -> None:
    assert {rpc.path for rpc in RPCS} == set(ALLOWED)
    assert len(RPCS) >= 12
    assert all(roles and roles <= set(ROLES) for roles in ALLOWED.values())


def test_the_table_is_as_the_architecture_says() -> None:
    by_role = {role: {path.rpartition("/")[2] for path, roles in ALLOWED.items() if role in roles} for role in ROLES}
    assert by_role == {
        "cloud": set(),
        "edge": {"Enrol", "SubmitHistogram", "WatchPlan", "Report", "Leave", "Direction", "Describe"},
        "device": {"Attend", "Describe"},
        "operator": {"GetStatus", "WatchStatus", "GetRecords", "FetchModel", "Describe"},
        "monitor": set(),
    }
    with pytest.raises(TypeError):
        ALLOWED["/sgfusion.v1.CloudService/New"] = frozenset({"edge"})  # type: ignore[index]


@pytest.mark.parametrize(
    ("identity", "uri"),
    [
        (Identity("cloud"), "spiffe://sgfusion/cloud"),
        (Identity("operator"), "spiffe://sgfusion/operator"),
        (Identity("monitor"), "spiffe://sgfusion/monitor"),
        (Identity("edge", "lublin"), "spiffe://sgfusion/edge/lublin"),
        (Identity("device", "u/17 ł"), "spiffe://sgfusion/device/u%2F17%20%C5%82"),
    ],
)
def test_a_uri_says_role_and_name(identity: Identity, uri: str) -> None:
    assert identity.uri == uri
    assert Identity.from_uri(uri) == identity


@given(name=NAMES)
def test_any_name_comes_back_from_its_uri(name: str) -> None:
    assert Identity.from_uri(Identity("device", name).uri) == Identity("device", name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cloud",
        "edge/lublin",
        "spiffe://sgfusion/",
        "spiffe://sgfusion/edge",
        "spiffe://sgfusion/edge/",
        "spiffe://sgfusion/cloud/",
        "spiffe://sgfusion/cloud/lublin",
        "spiffe://sgfusion/king/lublin",
        "spiffe://sgfusion/edge/lublin/more",
        "spiffe://sgfusion/edge/%6cublin",  # lublin, spelt otherwise
        "spiffe://sgfusion/edge/a%2fb",  # the canonical spelling has %2F
        "spiffe://sgfusion/edge/%FF",  # not UTF-8
        "spiffe://sgfusion.example/edge/lublin",
        "SPIFFE://sgfusion/edge/lublin",
        " spiffe://sgfusion/edge/lublin",
    ],
)
def test_what_is_no_identity_is_refused(text: str) -> None:
    with pytest.raises(IdentityError, match="is no identity: expected spiffe://sgfusion/cloud"):
        Identity.from_uri(text)


@pytest.mark.parametrize(
    ("role", "name", "said"),
    [
        ("edge", "", "role edge needs a name"),
        ("device", "", "role device needs a name"),
        ("cloud", "x", "role cloud has no name, got 'x'"),
        ("operator", "x", "role operator has no name, got 'x'"),
        ("king", "x", "role is 'king': there are cloud, edge, device, operator, monitor"),
    ],
)
def test_an_identity_that_cannot_be_is_refused(role: Role, name: str, said: str) -> None:
    with pytest.raises(IdentityError, match=said):
        Identity(role, name)


def test_in_words() -> None:
    assert [str(Identity("cloud")), str(Identity("edge", "lublin"))] == ["cloud", "edge lublin"]


@pytest.mark.parametrize(
    ("name", "server_name"),
    [
        ("lublin", "lublin.edge.sgfusion"),
        ("zone-7", "zone-7.edge.sgfusion"),
        ("7", "7.edge.sgfusion"),
        ("Lublin", None),
        ("a.b", None),
        ("-a", None),
        ("a-", None),
        ("łódź", None),
        ("a" * 64, None),
    ],
)
def test_a_server_name_is_the_zones_own_if_dns_can_say_it(name: str, server_name: str | None) -> None:
    hashed = f"x-{hashlib.sha256(name.encode()).hexdigest()[:20]}.edge.sgfusion"
    assert Identity("edge", name).server_name == (server_name or hashed)


def test_no_zone_can_be_named_to_pass_for_another() -> None:
    hashed = Identity("edge", "Lublin").server_name.removesuffix(".edge.sgfusion")
    assert Identity("edge", hashed).server_name != Identity("edge", "Lublin").server_name
    assert Identity("edge", "cloud").server_name != Identity("cloud").server_name


def test_devices_operators_and_monitors_serve_nothing() -> None:
    assert Identity("cloud").server_name == "cloud.sgfusion"
    for identity in (Identity("device", "u17"), Identity("operator"), Identity("monitor")):
        with pytest.raises(IdentityError, match=f"{identity} serves nothing"):
            _ = identity.server_name


@pytest.mark.parametrize(
    ("identity", "folder"),
    [
        (Identity("cloud"), "cloud"),
        (Identity("operator"), "operator"),
        (Identity("edge", "lublin"), "edge-lublin"),
        (Identity("edge", "łódź"), "edge-łódź"),
        (Identity("device", "u.1-7"), "device-u.1-7"),
        (Identity("device", "../../etc"), "device-..%2F..%2Fetc"),
        (Identity("device", "a b"), "device-a%20b"),
        (Identity("device", "a%20b"), "device-a%2520b"),
    ],
)
def test_a_folder_is_named_after_who_it_is_for(identity: Identity, folder: str) -> None:
    assert folder_of(Path("certs"), identity) == Path("certs") / folder


@given(names=st.lists(NAMES, min_size=2, max_size=2, unique=True))
def test_folders_stay_below_the_root_and_differ(names: list[str]) -> None:
    first, second = (folder_of(Path("certs"), Identity("device", name)) for name in names)
    assert first.parent == second.parent == Path("certs")
    assert first != second
