"""Certificates and keys in a folder of `sgfusion certs`, or in the folder of one identity."""

import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from console.doctor.findings import Finding, broken, look, ok
from sgfusion.errors import IdentityError
from sgfusion.wire.identity import Identity, folder_of

SOON = timedelta(days=30)
"""Before their end `sgfusion certs` makes certificates anew."""
ANEW = "`sgfusion certs RUN.toml` makes it anew where ca.key is; then bring the folder here and restart who uses it"


@dataclass(frozen=True)
class Certificate:
    """What a folder with ca.crt, tls.crt and tls.key holds; `fault` is why the rest is not known."""

    folder: Path
    fault: str = ""
    uri: str = ""
    begins: datetime | None = None
    ends: datetime | None = None
    ca_ends: datetime | None = None
    by_its_ca: bool = True
    """Whether the CA beside it has signed it."""
    same_ca: bool = True
    """Whether that is the CA of the folder above, if there is one."""
    key_fits: bool = True
    key_mode: int = 0o600


def look_at_certificates(root: Path) -> list[Certificate]:
    """Of the folder itself, or of all folders below that have keys."""
    above = root / "ca.crt"
    if (root / "tls.crt").exists() or (root / "tls.key").exists():
        return [_look(root, None)]
    places = sorted({path.parent for name in ("tls.crt", "tls.key") for path in root.glob(f"**/{name}")})
    return [_look(place, above if above.exists() else None) for place in places]


def certificate_findings(
    root: Path, seen: Sequence[Certificate], now: datetime, wanted: Identity | None = None
) -> list[Finding]:
    """One line for all that are well; one for each that is not. `wanted` is whose they should be, if there is one."""
    if not seen:
        return [
            broken(
                "certificates",
                f"{root} holds no tls.crt and no tls.key",
                "make them by `sgfusion certs RUN.toml`, or give --certs the folder where they are",
            )
        ]
    found = [finding for each in seen for finding in _faults(each, root, now, wanted)]
    fine = [each for each in seen if not any(True for _ in _faults(each, root, now, wanted))]
    if fine:
        ends = min(each.ends for each in fine if each.ends is not None)
        whose = _name(fine[0].uri) if len(fine) == 1 else f"{len(fine)} of {len(seen)}"
        found.insert(0, ok("certificates", f"{root}: {whose}, keys fit, {in_days(ends - now)} left"))
    return found


def _faults(each: Certificate, root: Path, now: datetime, wanted: Identity | None) -> Iterator[Finding]:
    path = each.folder / "tls.crt"
    if each.fault or each.begins is None or each.ends is None:
        yield broken("certificates", f"{each.folder}: {each.fault}", ANEW)
        return
    if not each.by_its_ca or not each.same_ca:
        which = "ca.crt beside it" if not each.by_its_ca else f"{root / 'ca.crt'}"
        yield broken(
            "certificates",
            f"{path} is of another CA than {which}",
            "bring the folder that was made where this run's ca.key is: two CAs do not know each other",
        )
    if not each.key_fits:
        yield broken(
            "certificates",
            f"{each.folder / 'tls.key'} is not the key of tls.crt",
            "bring both files of one folder of `sgfusion certs`",
        )
    yield from _role(each, root, wanted)
    yield from _times(path, each.begins, each.ends, now)
    if each.ca_ends is not None and each.ca_ends - now < SOON:
        yield look(
            "certificates",
            f"the CA of {each.folder} ends on {each.ca_ends:%Y-%m-%d}",
            "plan a new one: every certificate is made anew with it (docs/operate.md)",
        )
    if each.key_mode & 0o077:
        yield look(
            "certificates",
            f"{each.folder / 'tls.key'} may be read by others (mode {each.key_mode:03o})",
            f"chmod 600 {each.folder / 'tls.key'}",
        )


def _role(each: Certificate, root: Path, wanted: Identity | None) -> Iterator[Finding]:
    try:
        whose = Identity.from_uri(each.uri)
    except IdentityError:
        yield broken("certificates", f"{each.folder / 'tls.crt'} says {each.uri or 'nobody'!r}: no role of ours", ANEW)
        return
    place = folder_of(Path(), whose).name
    if wanted is not None and whose != wanted:
        yield broken(
            "certificates",
            f"{each.folder / 'tls.crt'} is that of {whose}, and {wanted} is needed",
            f"give the folder {folder_of(Path('certs'), wanted)}",
        )
    elif wanted is None and each.folder != root and each.folder.name != place:
        yield broken(
            "certificates",
            f"{each.folder / 'tls.crt'} is that of {whose}, in a folder of another name",
            f"it belongs into {place}; make this one anew by `sgfusion certs RUN.toml`",
        )


def _times(path: Path, begins: datetime, ends: datetime, now: datetime) -> Iterator[Finding]:
    if ends <= now:
        yield broken("certificates", f"{path} ended on {ends:%Y-%m-%d}", ANEW)
    elif begins > now:
        yield broken(
            "clock",
            f"{path} is valid from {begins:%Y-%m-%d %H:%M} UTC on, and it is {now:%Y-%m-%d %H:%M}",
            "set this host's clock; is its time kept by NTP?",
        )
    elif ends - now < SOON:
        yield look("certificates", f"{path} ends on {ends:%Y-%m-%d}, in {in_days(ends - now)}", ANEW)


def in_days(span: timedelta) -> str:
    """`1 day`, `9 days`."""
    if span < timedelta(days=1):
        return "less than a day"
    return f"{span.days} day{'' if span.days == 1 else 's'}"


def identity_in(folder: Path) -> Identity | None:
    """Whose keys a folder holds; None if that cannot be told."""
    try:
        return Identity.from_uri(uri_of(x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())))
    except (OSError, ValueError, IdentityError):
        return None


def look_at_ca_keys(root: Path) -> dict[Path, int]:
    """The permissions of the CA's key, where the folder or the one above it has one."""
    paths = (root / "ca.key", root.parent / "ca.key")
    return {path: stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_file()}


def ca_key_findings(modes: Mapping[Path, int]) -> list[Finding]:
    """Worse than one certificate's key: who reads it can make himself anybody of the run."""
    return [
        broken("certificates", f"{path} may be read by others (mode {mode:03o})", f"chmod 600 {path}")
        for path, mode in modes.items()
        if mode & 0o077
    ]


def _name(uri: str) -> str:
    try:
        return str(Identity.from_uri(uri))
    except IdentityError:
        return uri


def _look(folder: Path, above: Path | None) -> Certificate:
    try:
        ca = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
        found = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
        key = load_pem_private_key((folder / "tls.key").read_bytes(), None)
        mode = stat.S_IMODE((folder / "tls.key").stat().st_mode)
        top = None if above is None else x509.load_pem_x509_certificate(above.read_bytes())
    except OSError as error:
        return Certificate(folder, f"{Path(error.filename or folder).name} cannot be read ({error.strerror})")
    except (ValueError, TypeError):
        return Certificate(folder, "ca.crt, tls.crt and tls.key are not a CA, a certificate and a key")
    return Certificate(
        folder,
        uri=uri_of(found),
        begins=found.not_valid_before_utc,
        ends=found.not_valid_after_utc,
        ca_ends=ca.not_valid_after_utc,
        by_its_ca=signed(found, ca),
        same_ca=top is None or top == ca,
        key_fits=found.public_key() == key.public_key(),
        key_mode=mode,
    )


def uri_of(found: x509.Certificate) -> str:
    """Who it says that it is of; empty if it does not."""
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ""
    return ", ".join(names.get_values_for_type(x509.UniformResourceIdentifier))


def signed(found: x509.Certificate, ca: x509.Certificate) -> bool:
    """Whether that CA has."""
    try:
        found.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
