"""`sgfusion certs`: a CA, and a certificate with its key for each identity of a run (architecture, Identity).

Everything is in one folder: `ca.crt` and `ca.key`, and for each identity a folder with ca.crt, tls.crt and tls.key,
which is all that its host needs. Who has `ca.key` can be anybody: it stays where this command runs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from rich.console import Console

from console.authority import Authority, issue, key_pem, make_authority
from sgfusion.durable import replace_file
from sgfusion.errors import DataError, IdentityError
from sgfusion.runfile import RunFile
from sgfusion.wire.identity import Identity, folder_of

KEPT = timedelta(days=30)
"""A certificate that is valid for longer than this is not made anew."""
CA_DAYS = 3650
CENTRAL = (Identity("cloud"), Identity("operator"), Identity("monitor"))
"""Whom every run has once."""
_SKEW = timedelta(hours=1)  # clocks of hosts differ: a certificate must not be of the future anywhere


@dataclass(frozen=True)
class Made:
    """Whose certificates were made and whose were kept, and when the CA ends."""

    new: tuple[Identity, ...]
    kept: tuple[Identity, ...]
    ca_ends: datetime


@dataclass(frozen=True)
class Asked:
    """Whose certificates: all that the run's data has, unless some are named."""

    zones: Sequence[str] = ()
    """Their edges."""
    devices: Sequence[str] = ()
    hosts: Sequence[Sequence[str]] = ()
    """Zones whose devices share a host, for each host: the keys of its devices go into a folder of their own."""

    @property
    def by_name(self) -> bool:
        """Whether some are named, so that the others are left alone."""
        return bool(self.zones or self.devices)


def certs(run: RunFile, out: Path, asked: Asked, *, days: int, renew: bool, now: datetime, screen: Console) -> None:
    """Make what the run needs or, if some are named, theirs alone; a new CA signs for the central ones first."""
    if asked.by_name:
        named = (*(Identity("edge", zone) for zone in asked.zones), *(Identity("device", d) for d in asked.devices))
        identities = (*(who for who in CENTRAL if not folder_of(out, who).exists()), *named)
    else:
        identities = (*CENTRAL, *_everyone(run, devices=not asked.hosts))
    made = [make_certificates(out, identities, days=days, renew=renew, now=now)]
    for zones in asked.hosts:
        theirs = _devices(run, zones)
        made.append(make_certificates(out, theirs, days=days, renew=renew, now=now, within=host_folder(zones)))
    new, kept = [who for part in made for who in part.new], sum(len(part.kept) for part in made)
    shown = ", ".join(map(str, new[:8])) + (", …" if len(new) > 8 else "")
    screen.print(
        f"{out}: {len(new)} made{f' ({shown})' if shown else ''}, {kept} kept. "
        f"The CA ends on {made[0].ca_ends:%Y-%m-%d}. Whoever has {out / 'ca.key'} can be anybody: keep it to yourself",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def host_folder(zones: Sequence[str]) -> str:
    """Where the keys of a host's devices are, below the folder of all keys: named by the first of its zones."""
    return f"devices-{folder_of(Path(), Identity('edge', zones[0])).name.removeprefix('edge-')}"


def _everyone(run: RunFile, *, devices: bool) -> tuple[Identity, ...]:
    """The edges and devices that the run's data has."""
    from device.sources.source import open_source  # noqa: PLC0415 (torch takes seconds; named ones need no data)

    zones = open_source(run).zones()
    return (*(Identity("edge", zone) for zone in zones), *(_devices(run, zones) if devices else ()))


def _devices(run: RunFile, zones: Sequence[str]) -> tuple[Identity, ...]:
    """The devices that the data has of these zones; one that roams is there once."""
    from device.sources.source import open_source  # noqa: PLC0415
    from device.sources.zone_name import zones_or_meant  # noqa: PLC0415

    source = open_source(run)
    if unknown := [zone for zone in zones if zone not in source.zones()]:
        there = zones_or_meant(unknown[0], source.zones())
        raise DataError(f"--host: zone {unknown[0]!r} is not one of the run's: {there}")
    return tuple(Identity("device", name) for name in sorted({d for zone in zones for d in source.devices(zone)}))


def make_certificates(
    folder: Path, identities: Iterable[Identity], *, days: int, renew: bool, now: datetime, within: str = ""
) -> Made:
    """See that each identity has a certificate in its folder; the CA is made if there is none. Killed and started
    again, it goes on: a half-written folder is made anew. Folders are `within` one of the CA's.
    """
    authority = _authority(folder, now)
    ends = authority.certificate.not_valid_after_utc
    new: list[Identity] = []
    kept: list[Identity] = []
    for identity in dict.fromkeys(identities):
        place = folder_of(folder / within, identity)
        if not renew and _is_good(place, identity, authority, now):
            kept.append(identity)
            continue
        certificate, key = issue(authority, identity, begins=now - _SKEW, ends=min(now + timedelta(days=days), ends))
        replace_file(place / "ca.crt", authority.certificate.public_bytes(Encoding.PEM))
        replace_file(place / "tls.key", key, private=True)
        replace_file(place / "tls.crt", certificate)
        new.append(identity)
    return Made(tuple(new), tuple(kept), ends)


def _authority(folder: Path, now: datetime) -> Authority:
    """The folder's CA, or a new one. The key is written first: a folder with ca.crt has both."""
    public, private = folder / "ca.crt", folder / "ca.key"
    if not public.exists():
        made = make_authority(begins=now - _SKEW, ends=now + timedelta(days=CA_DAYS))
        replace_file(private, key_pem(made.key), private=True)
        replace_file(public, made.certificate.public_bytes(Encoding.PEM))
        return made
    if not private.exists():
        raise IdentityError(
            f"{private} is missing, and {public} signs nothing without it: bring it, or give another --out"
        )
    certificate = _certificate(public)
    key = _key(private)
    if certificate is None or key is None or certificate.public_key() != key.public_key():
        raise IdentityError(
            f"{public} and {private} are not a CA and its key: bring the right ones, or give another --out"
        )
    if certificate.not_valid_after_utc <= now:
        raise IdentityError(
            f"the CA in {folder} ended on {certificate.not_valid_after_utc:%Y-%m-%d}: remove {public}, run this again, "
            "and bring every host its new folder; old certificates and new ones do not know each other"
        )
    return Authority(certificate, key)


def _is_good(place: Path, identity: Identity, authority: Authority, now: datetime) -> bool:
    """Whether the folder has a certificate of the identity by this CA that lasts, and its key."""
    certificate, key, ca = _certificate(place / "tls.crt"), _key(place / "tls.key"), _certificate(place / "ca.crt")
    if certificate is None or key is None or ca != authority.certificate:
        return False
    try:
        certificate.verify_directly_issued_by(authority.certificate)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return (
        certificate.public_key() == key.public_key()
        and names.get_values_for_type(x509.UniformResourceIdentifier) == [identity.uri]
        and certificate.not_valid_before_utc <= now
        and certificate.not_valid_after_utc > now + KEPT
    )


def _certificate(path: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def _key(path: Path) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None
