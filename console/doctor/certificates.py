"""Certificates and keys in a folder of `sgfusion certs`, or in the folder of one identity."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from console.doctor.findings import Finding, broken, look, ok
from sgfusion.errors import IdentityError
from sgfusion.wire.identity import Identity, folder_of

SOON = timedelta(days=30)
"""Before their end `sgfusion certs` makes certificates anew."""
OWN = ("tls.crt", "tls.key")
"""Beside a ca.crt, which the folder above may have too."""
ABSENT = (FileNotFoundError, NotADirectoryError)
ANEW = "`sgfusion certs RUN.toml` makes it anew where ca.key is; then bring the folder here and restart who uses it"
BY_UP = "stop that sgfusion up if it runs, and type it again, with the same words: it makes them anew, and goes on"
OPEN = "look as the user whose keys they are, or let this one read them"


@dataclass(frozen=True)
class Certificate:
    """What a folder with ca.crt, tls.crt and tls.key holds; `fault` is why the rest is not known."""

    folder: Path
    fault: str = ""
    remedy: str = ""
    """What to do about the fault, if not to make them anew."""
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

    @property
    def whose(self) -> Identity | None:
        """None if that cannot be told, or they are nobody's of a run."""
        try:
            return Identity.from_uri(self.uri)
        except IdentityError:
            return None


def look_at_certificates(root: Path) -> list[Certificate]:
    """Of the folder itself, or of all folders below that have keys, or may have them and cannot be looked into."""
    if holds_keys(root):
        return [look_at_keys(root)]
    errors: list[OSError] = []
    places = {Path(place) for place, _, names in os.walk(root, onerror=errors.append) if {*names} & {*OWN}}
    faults = [_unread(Path(error.filename), error) for error in errors if not isinstance(error, ABSENT)]
    above = None
    try:
        above = x509.load_pem_x509_certificate((root / "ca.crt").read_bytes())
    except ABSENT:
        pass
    except OSError as error:
        faults.append(_unread(root, error))
    except ValueError:
        faults.append(
            Certificate(root, "ca.crt is not a CA's certificate", "copy that of a folder below: it is the same")
        )
    return sorted([*(look_at_keys(place, above) for place in places), *faults], key=lambda each: each.folder)


def holds_keys(folder: Path) -> bool:
    """Whether it is one identity's. Also if it cannot be looked into: why, is said by who reads them."""
    for name in OWN:
        try:
            (folder / name).stat()
        except ABSENT:
            continue
        except OSError:
            return True
        return True
    return False


def certificate_findings(
    root: Path, seen: Sequence[Certificate], now: datetime, wanted: Identity | None = None, anew: str = ANEW
) -> list[Finding]:
    """One line for all that are well; one for each that is not. `wanted` is whose they should be, if there is one, and
    `anew` how others are made.
    """
    if not seen:
        return [
            broken(
                "certificates",
                f"{root} holds no tls.crt and no tls.key",
                "make them by `sgfusion certs RUN.toml`, or give --certs the folder where they are",
            )
        ]
    found = [finding for each in seen for finding in _faults(each, root, now, wanted, anew)]
    fine = [each for each in seen if not any(True for _ in _faults(each, root, now, wanted, anew))]
    if fine:
        ends = min(each.ends for each in fine if each.ends is not None)
        whose = str(fine[0].whose) if len(fine) == 1 else f"{len(fine)} of {len(seen)}"
        found.insert(0, ok("certificates", f"{root}: {whose}, keys fit, {in_days(ends - now)} left"))
    return found


def _faults(each: Certificate, root: Path, now: datetime, wanted: Identity | None, anew: str) -> Iterator[Finding]:
    path = each.folder / "tls.crt"
    if each.fault or each.begins is None or each.ends is None:
        yield broken("certificates", f"{each.folder}: {each.fault}", each.remedy or anew)
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
    yield from _role(each, root, wanted, anew)
    yield from _times(path, each.begins, each.ends, now, anew)
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


def _role(each: Certificate, root: Path, wanted: Identity | None, anew: str) -> Iterator[Finding]:
    whose = each.whose
    if whose is None:
        yield broken("certificates", f"{each.folder / 'tls.crt'} says {each.uri or 'nobody'!r}: no role of ours", anew)
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


def _times(path: Path, begins: datetime, ends: datetime, now: datetime, anew: str) -> Iterator[Finding]:
    if ends <= now:
        yield broken("certificates", f"{path} ended on {ends:%Y-%m-%d}", anew)
    elif begins > now:
        yield broken(
            "clock",
            f"{path} is valid from {begins:%Y-%m-%d %H:%M} UTC on, and it is {now:%Y-%m-%d %H:%M}",
            "set this host's clock; is its time kept by NTP?",
        )
    elif ends - now < SOON:
        yield look("certificates", f"{path} ends on {ends:%Y-%m-%d}, in {in_days(ends - now)}", anew)


def in_days(span: timedelta) -> str:
    """`1 day`, `9 days`."""
    if span < timedelta(days=1):
        return "less than a day"
    return f"{span.days} day{'' if span.days == 1 else 's'}"


def look_at_ca_keys(root: Path) -> dict[Path, int]:
    """The permissions of the CA's key, where the folder or the one above it has one that can be looked at."""
    found = {}
    for path in (root / "ca.key", root.parent / "ca.key"):
        with suppress(OSError):
            found[path] = stat.S_IMODE(path.stat().st_mode)
    return found


def ca_key_findings(modes: Mapping[Path, int]) -> list[Finding]:
    """Worse than one certificate's key: who reads it can make himself anybody of the run."""
    return [
        broken("certificates", f"{path} may be read by others (mode {mode:03o})", f"chmod 600 {path}")
        for path, mode in modes.items()
        if mode & 0o077
    ]


def look_at_keys(folder: Path, above: x509.Certificate | None = None) -> Certificate:
    """Those of one identity; `above` is the CA's certificate in the folder that theirs is in, if it has one."""
    try:
        ca = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
        found = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
        key = load_pem_private_key((folder / "tls.key").read_bytes(), None)
        return Certificate(
            folder,
            uri=uri_of(found),
            begins=found.not_valid_before_utc,
            ends=found.not_valid_after_utc,
            ca_ends=ca.not_valid_after_utc,
            by_its_ca=signed(found, ca),
            same_ca=above is None or above == ca,
            key_fits=found.public_key() == key.public_key(),
            key_mode=stat.S_IMODE((folder / "tls.key").stat().st_mode),
        )
    except OSError as error:
        return _unread(folder, error)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return Certificate(folder, "ca.crt, tls.crt and tls.key are not a CA, a certificate and a key")


def _unread(folder: Path, error: OSError) -> Certificate:
    path = Path(error.filename or folder)
    which = "it" if path == folder else path.name
    remedy = OPEN if isinstance(error, PermissionError) else ""
    return Certificate(folder, f"{which} cannot be read ({error.strerror})", remedy)


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
