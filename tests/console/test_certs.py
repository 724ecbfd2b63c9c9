"""`sgfusion certs`: what it makes, what it keeps, and what it refuses."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from console.certs import make_certificates
from sgfusion.errors import IdentityError
from sgfusion.wire.identity import Identity, folder_of
from tests.console.commands import files, sgfusion

CLOUD, OPERATOR = Identity("cloud"), Identity("operator")
EDGE, DEVICE = Identity("edge", "lublin"), Identity("device", "u17")
NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
RUN = """
name = "small"
seed = 1
rounds = 2
[task]
name = "linear"
[data]
source = "generated_zones"
devices = 3
samples = 8
features = 4
kinds = 2
contrast = 0.2
difference = 0.1
noise = 1.0
[zones]
names = ["lublin", "radom"]
"""


def make(folder: Path, *identities: Identity, now: datetime = NOW, days: int = 365, renew: bool = False) -> list[str]:
    """Whose certificates were made."""
    made = make_certificates(folder, identities, days=days, renew=renew, now=now)
    assert {*made.new, *made.kept} == set(identities)
    return [str(identity) for identity in made.new]


def certificate_of(folder: Path, identity: Identity) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder_of(folder, identity) / "tls.crt").read_bytes())


@pytest.mark.parametrize(
    ("identity", "dns"),
    [(CLOUD, ["cloud.sgfusion"]), (EDGE, ["lublin.edge.sgfusion"]), (DEVICE, []), (OPERATOR, [])],
)
def test_a_certificate_says_who_it_is_for_and_what_it_may_be(
    tmp_path: Path, identity: Identity, dns: list[str]
) -> None:
    make(tmp_path, identity, days=100)
    certificate = certificate_of(tmp_path, identity)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [identity.uri]
    assert names.get_values_for_type(x509.DNSName) == dns
    uses = set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    server = {ExtendedKeyUsageOID.SERVER_AUTH} if dns else set()
    assert uses == {ExtendedKeyUsageOID.CLIENT_AUTH} | server
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert certificate.not_valid_after_utc == NOW + 100 * DAY
    assert certificate.not_valid_before_utc < NOW  # another host's clock may be behind
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes()))


def test_a_folder_is_all_that_a_host_needs_and_keys_are_their_owners_alone(tmp_path: Path) -> None:
    make(tmp_path, CLOUD, DEVICE)
    assert set(files(tmp_path)) == {
        "ca.crt",
        "ca.key",
        *(f"{who}/{name}" for who in ("cloud", "device-u17") for name in ("ca.crt", "tls.crt", "tls.key")),
    }
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*.key")}
    assert modes == {"ca.key": 0o600, "tls.key": 0o600}
    assert (tmp_path / "cloud/ca.crt").read_bytes() == (tmp_path / "ca.crt").read_bytes()


def test_what_lasts_is_kept_and_what_ends_soon_is_made_anew(tmp_path: Path) -> None:
    assert make(tmp_path, CLOUD, EDGE, days=100) == ["cloud", "edge lublin"]
    before = files(tmp_path)
    assert make(tmp_path, CLOUD, EDGE, now=NOW + 69 * DAY) == []
    assert files(tmp_path) == before
    assert make(tmp_path, CLOUD, EDGE, DEVICE, now=NOW + 70 * DAY) == ["cloud", "edge lublin", "device u17"]
    after = files(tmp_path)
    assert {name for name in before if before[name] == after[name]} == {
        "ca.crt", "ca.key", "cloud/ca.crt", "edge-lublin/ca.crt",
    }  # fmt: skip


def test_renew_makes_anew_by_the_same_ca(tmp_path: Path) -> None:
    make(tmp_path, CLOUD, EDGE)
    before = files(tmp_path)
    assert make(tmp_path, EDGE, renew=True) == ["edge lublin"]
    after = files(tmp_path)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"edge-lublin/tls.crt", "edge-lublin/tls.key"}


def other_ca(place: Path) -> None:
    make(place.parent / "other", DEVICE)
    (place / "ca.crt").write_bytes((place.parent / "other/ca.crt").read_bytes())


def swap(place: Path, *names: str) -> None:
    for name in names:
        (place / name).write_bytes((place.parent / "device-u17" / name).read_bytes())


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda place: (place / "tls.key").unlink(), id="no key"),
        pytest.param(lambda place: (place / "tls.crt").write_text("half a certif"), id="half a certificate"),
        pytest.param(lambda place: (place / "ca.crt").unlink(), id="no CA"),
        pytest.param(other_ca, id="another CA"),
        pytest.param(lambda place: swap(place, "tls.key"), id="another's key"),
        pytest.param(lambda place: swap(place, "tls.crt", "tls.key"), id="another's certificate"),
    ],
)
def test_what_is_no_good_is_made_anew(tmp_path: Path, harm: object) -> None:
    make(tmp_path, EDGE, DEVICE)
    assert callable(harm)
    harm(folder_of(tmp_path, EDGE))
    assert make(tmp_path, EDGE, DEVICE) == ["edge lublin"]
    assert make(tmp_path, EDGE, DEVICE) == []


def test_a_certificate_does_not_outlive_its_ca(tmp_path: Path) -> None:
    make(tmp_path, EDGE, days=9_999)
    ca = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    assert certificate_of(tmp_path, EDGE).not_valid_after_utc == ca.not_valid_after_utc == NOW + 3_650 * DAY


def test_an_ended_ca_is_refused_with_the_way_out(tmp_path: Path) -> None:
    make(tmp_path, EDGE)
    later = NOW + 3_650 * DAY
    with pytest.raises(IdentityError, match=r"ended on 2039-12-30: remove .*ca\.crt, run this again"):
        make(tmp_path, EDGE, now=later)
    (tmp_path / "ca.crt").unlink()
    assert make(tmp_path, EDGE, now=later) == ["edge lublin"]


def test_a_ca_without_its_key_signs_nothing(tmp_path: Path) -> None:
    make(tmp_path, EDGE)
    (tmp_path / "ca.key").rename(tmp_path / "elsewhere")
    with pytest.raises(IdentityError, match=r"ca\.key is missing.*bring it, or give another --out"):
        make(tmp_path, EDGE)
    make(tmp_path / "other", EDGE)
    (tmp_path / "ca.key").write_bytes((tmp_path / "other/ca.key").read_bytes())
    with pytest.raises(IdentityError, match="are not a CA and its key"):
        make(tmp_path, EDGE)


def test_the_command_makes_all_that_the_run_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text(RUN)
    arguments = ("certs", tmp_path / "run.toml", "--out", tmp_path / "certs")
    answer = sgfusion(capsys, *arguments)
    assert answer.code == 0, answer.error
    assert {path.name for path in (tmp_path / "certs").iterdir() if path.is_dir()} == {
        "cloud", "operator", "monitor", "edge-lublin", "edge-radom", "device-d0", "device-d1", "device-d2",
    }  # fmt: skip
    assert "8 made (cloud, operator, monitor, edge lublin" in answer.out
    assert "0 made, 8 kept" in sgfusion(capsys, *arguments).out


def test_the_command_enrols_one_more_by_the_same_ca(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text(RUN.replace("generated_zones", "not_there"))  # the data may be elsewhere
    out = tmp_path / "certs"
    first = sgfusion(capsys, "certs", tmp_path / "run.toml", "--out", out, "--zone", "lublin")
    assert first.code == 0, first.error
    assert {path.name for path in out.iterdir() if path.is_dir()} == {"cloud", "operator", "monitor", "edge-lublin"}
    before = files(out)
    more = ("--zone", "Nowy Sącz", "--zone", "radom", "--device", "../u17", "--days", "99", "--renew")
    second = sgfusion(capsys, "certs", tmp_path / "run.toml", "--out", out, *more)
    assert second.code == 0, second.error
    after = files(out)
    assert {name: after[name] for name in before} == before
    assert {name.partition("/")[0] for name in after.keys() - before.keys()} == {
        "edge-Nowy%20S%C4%85cz", "edge-radom", "device-..%2Fu17",
    }  # fmt: skip
    ends = certificate_of(out, Identity("device", "../u17")).not_valid_after_utc
    assert abs(ends - datetime.now(UTC) - 99 * DAY) < timedelta(hours=1)


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text(RUN)
    answer = sgfusion(capsys, "certs", tmp_path / "run.toml", "--out", tmp_path / "certs", "--zone", "")
    assert answer.code == 1
    assert "an identity of role edge needs a name" in answer.error
    assert not (tmp_path / "certs").exists()


def test_keys_of_a_hosts_devices_are_in_a_folder_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.toml").write_text(RUN)
    done = sgfusion(capsys, "certs", tmp_path / "run.toml", "--out", tmp_path / "certs", "--host", "radom,lublin")
    assert done.code == 0, done.error
    found = {path.parent.relative_to(tmp_path / "certs").as_posix() for path in (tmp_path / "certs").rglob("tls.key")}
    devices = {f"devices-radom/device-{name}" for name in ("d0", "d1", "d2")}  # a device of both zones is there once
    assert found == {"cloud", "operator", "monitor", "edge-lublin", "edge-radom", *devices}

    # One more zone on a host of its own, by the same CA: two folders to bring there.
    arguments = ("--zone", "plock", "--host", "plock", "--set", 'zones.names=["lublin","radom","plock"]')
    assert sgfusion(capsys, "certs", tmp_path / "run.toml", "--out", tmp_path / "certs", *arguments).code == 0
    added = {path.parent.relative_to(tmp_path / "certs").as_posix() for path in (tmp_path / "certs").rglob("tls.key")}
    plock = {f"devices-plock/device-{name}" for name in ("d0", "d1", "d2")}
    assert added - found == {"edge-plock", *plock}
    assert (tmp_path / "certs/edge-plock/ca.crt").read_bytes() == (tmp_path / "certs/ca.crt").read_bytes()

    unknown = sgfusion(capsys, "certs", tmp_path / "run.toml", "--out", tmp_path / "certs", "--host", "nowhere")
    assert unknown.code == 1
    assert "--host: zone 'nowhere' is not one of the run's: lublin, radom" in unknown.error
