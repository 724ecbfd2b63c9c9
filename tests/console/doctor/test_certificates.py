"""Each fault of a certificate from a certificate that has it."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from console.certs import make_certificates
from console.doctor.certificates import (
    OPEN,
    ca_key_findings,
    certificate_findings,
    look_at_ca_keys,
    look_at_certificates,
)
from console.doctor.findings import Finding, broken
from sgfusion.wire.channel import Keys
from sgfusion.wire.identity import Identity, folder_of
from tests.cluster.keys import Issuer
from tests.console.rights import without_rights

NOW = datetime.now(UTC)
ASH, BIRCH, OPERATOR = Identity("edge", "ash"), Identity("edge", "birch"), Identity("operator")
EVERYONE = (Identity("cloud"), OPERATOR, ASH, BIRCH, Identity("device", "u 1"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_certificates(tmp_path / "certs", EVERYONE, days=365, renew=False, now=NOW)
    return tmp_path / "certs"


def write(folder: Path, keys: Keys) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("ca.crt", keys.ca), ("tls.crt", keys.certificate), ("tls.key", keys.key)):
        (folder / name).write_bytes(content)
    (folder / "tls.key").chmod(0o600)


def found(folder: Path, wanted: Identity | None = None, now: datetime = NOW) -> list[Finding]:
    return certificate_findings(folder, look_at_certificates(folder), now, wanted)


def only(folder: Path, wanted: Identity | None = None, now: datetime = NOW) -> Finding:
    """What is not well, and nothing else is."""
    (finding,) = [each for each in found(folder, wanted, now) if each.verdict != "ok"]
    return finding


def test_a_folder_of_certs_is_well_and_says_how_long(root: Path) -> None:
    (fine,) = found(root)
    assert (fine.verdict, fine.text) == ("ok", f"{root}: 5 of 5, keys fit, 364 days left")


def test_so_is_one_identitys(root: Path) -> None:
    (fine,) = found(root / "operator", OPERATOR)
    assert (fine.verdict, fine.text) == ("ok", f"{root / 'operator'}: operator, keys fit, 364 days left")


def test_one_that_has_ended_and_one_that_soon_will(tmp_path: Path) -> None:
    write(tmp_path, Issuer().keys(ASH, begins=-9, ends=-1))
    ended = only(tmp_path)
    assert (ended.verdict, ended.text) == ("broken", f"{tmp_path / 'tls.crt'} ended on {NOW - timedelta(1):%Y-%m-%d}")
    assert "sgfusion certs RUN.toml" in ended.remedy
    write(tmp_path, Issuer().keys(ASH, ends=9.5))
    soon = only(tmp_path)
    assert soon.verdict == "look"
    assert soon.text.endswith("in 9 days")


def test_one_of_the_future_says_that_the_clock_is_behind(tmp_path: Path) -> None:
    write(tmp_path, Issuer().keys(ASH, begins=1, ends=80))
    behind = only(tmp_path)
    assert (behind.check, behind.verdict) == ("clock", "broken")
    assert "NTP" in behind.remedy


def test_one_of_another_ca(root: Path) -> None:
    """By a certificate that was put beside our CA, or by a whole folder of another run's."""
    keys = Issuer().keys(ASH, ends=90)
    (root / "edge-ash" / "tls.crt").write_bytes(keys.certificate)
    (root / "edge-ash" / "tls.key").write_bytes(keys.key)
    beside = only(root)
    assert (beside.verdict, beside.text) == (
        "broken",
        f"{root / 'edge-ash' / 'tls.crt'} is of another CA than ca.crt beside it",
    )
    write(root / "edge-ash", keys)
    whole = only(root)
    assert whole.text == f"{root / 'edge-ash' / 'tls.crt'} is of another CA than {root / 'ca.crt'}"


def test_the_key_of_another_certificate(root: Path) -> None:
    shutil.copy(root / "edge-birch" / "tls.key", root / "edge-ash" / "tls.key")
    wrong = only(root)
    assert (wrong.verdict, wrong.text) == ("broken", f"{root / 'edge-ash' / 'tls.key'} is not the key of tls.crt")


def test_another_role_than_is_needed(root: Path) -> None:
    wrong = only(root / "edge-ash", OPERATOR)
    assert wrong.text == f"{root / 'edge-ash' / 'tls.crt'} is that of edge ash, and operator is needed"
    assert wrong.remedy == "give the folder certs/operator"


def test_a_folder_with_somebody_elses_certificate(root: Path) -> None:
    shutil.rmtree(root / "edge-ash")
    shutil.copytree(root / "edge-birch", root / "edge-ash")
    wrong = only(root)
    assert wrong.text == f"{root / 'edge-ash' / 'tls.crt'} is that of edge birch, in a folder of another name"


def test_a_role_that_there_is_not(tmp_path: Path) -> None:
    import trustme

    ca = trustme.CA()
    server = ca.issue_cert("localhost")
    write(
        tmp_path / "odd", Keys(ca.cert_pem.bytes(), server.cert_chain_pems[0].bytes(), server.private_key_pem.bytes())
    )
    assert any("no role of ours" in finding.text for finding in found(tmp_path / "odd"))


def test_a_key_that_others_may_read(root: Path) -> None:
    (root / "cloud" / "tls.key").chmod(0o644)
    loose = only(root)
    assert (loose.verdict, loose.text) == ("look", f"{root / 'cloud' / 'tls.key'} may be read by others (mode 644)")
    assert loose.remedy == f"chmod 600 {root / 'cloud' / 'tls.key'}"


def test_the_cas_key_that_others_may_read(root: Path) -> None:
    """Worse than any other: who reads it can make himself anybody. It is found from a folder below it too."""
    assert ca_key_findings(look_at_ca_keys(root)) == [], "as `sgfusion certs` makes it"
    (root / "ca.key").chmod(0o604)
    loose = broken(
        "certificates", f"{root / 'ca.key'} may be read by others (mode 604)", f"chmod 600 {root / 'ca.key'}"
    )
    assert ca_key_findings(look_at_ca_keys(root)) == [loose]
    assert ca_key_findings(look_at_ca_keys(root / "operator")) == [loose]
    (root / "ca.key").unlink()
    assert look_at_ca_keys(root) == {}


def test_what_cannot_be_read(root: Path, tmp_path: Path) -> None:
    (root / "cloud" / "tls.key").unlink()
    (root / "edge-ash" / "tls.crt").write_bytes(b"nonsense")
    missing, garbage = sorted((each.text for each in found(root) if each.verdict == "broken"), key=len)
    assert missing == f"{root / 'cloud'}: tls.key cannot be read (No such file or directory)"
    assert garbage == f"{root / 'edge-ash'}: ca.crt, tls.crt and tls.key are not a CA, a certificate and a key"
    (tmp_path / "empty").mkdir()
    assert only(tmp_path / "empty").text == f"{tmp_path / 'empty'} holds no tls.crt and no tls.key"
    assert only(tmp_path / "nowhere").verdict == "broken"


def test_a_ca_that_ends_soon(root: Path) -> None:
    late = NOW + timedelta(days=3640)
    keys = look_at_certificates(folder_of(root, ASH))
    assert any("the CA of" in each.text for each in certificate_findings(root / "edge-ash", keys, late))


def test_what_one_may_not_read_is_told_and_is_not_made_anew(root: Path) -> None:
    """Neither the folder itself, nor one below it, which a search would pass over."""
    (root / "edge-ash").chmod(0)
    (root / "edge-birch" / "tls.key").chmod(0)
    told = without_rights(lambda: found(root))
    fine, *closed = told
    assert fine.text.startswith(f"{root}: 3 of 5, keys fit")
    assert [each.text for each in closed] == [
        f"{root / 'edge-ash'}: it cannot be read (Permission denied)",
        f"{root / 'edge-birch'}: tls.key cannot be read (Permission denied)",
    ]
    assert {each.remedy for each in closed} == {OPEN}
    (own,) = without_rights(lambda: found(root / "edge-ash"))
    assert own == broken("certificates", f"{root / 'edge-ash'}: ca.crt cannot be read (Permission denied)", OPEN)
    assert without_rights(lambda: look_at_ca_keys(root / "edge-ash")) == {root / "ca.key": 0o600}


def test_the_cas_certificate_that_is_damaged_is_blamed_and_not_those_below(root: Path) -> None:
    (root / "ca.crt").write_bytes(b"nonsense")
    wrong = only(root)
    assert wrong == broken(
        "certificates", f"{root}: ca.crt is not a CA's certificate", "copy that of a folder below: it is the same"
    )
