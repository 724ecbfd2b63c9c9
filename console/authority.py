"""A CA and what it signs: X.509 as our tiers read it (`sgfusion/wire/identity.py`)."""

import secrets
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sgfusion.wire.identity import Identity

_SERVERS = frozenset({"cloud", "edge"})


@dataclass(frozen=True)
class Authority:
    """A CA with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_authority(*, begins: datetime, ends: datetime) -> Authority:
    """A new CA. Its name has a random part: certificates of two runs' CAs can be told apart."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"SGFusion CA {secrets.token_hex(4)}")
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    builder = _builder(name, name, key.public_key(), begins, ends)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    return Authority(builder.sign(key, hashes.SHA256()), key)


def issue(authority: Authority, identity: Identity, *, begins: datetime, ends: datetime) -> tuple[bytes, bytes]:
    """A certificate of the identity and its key, in PEM. Devices, operators and monitors can be clients alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    serves = identity.role in _SERVERS
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if serves else [])]
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(identity.uri)]
    if serves:
        names.append(x509.DNSName(identity.server_name))
    subject = _name(f"SGFusion {identity.role}")
    builder = _builder(subject, authority.certificate.subject, key.public_key(), begins, ends)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    certificate = builder.add_extension(issuer, critical=False).sign(authority.key, hashes.SHA256())
    return certificate.public_bytes(Encoding.PEM), key_pem(key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, begins: datetime, ends: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number())
    builder = builder.not_valid_before(begins).not_valid_after(ends)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key, not encrypted: services start without anybody there."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
