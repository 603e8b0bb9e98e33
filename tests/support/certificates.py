"""Certificates of TLS that sign themselves, for servers of tests and for their clients."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certified:
    """The files, in PEM, of a certificate for this machine and of its key."""

    certificate: str
    key: str


def certified(folder: Path, name: str) -> Certified:
    """A certificate that is valid today, and is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    places = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    made = made.add_extension(x509.SubjectAlternativeName(places), critical=False)
    pem = serialization.Encoding.PEM
    written = Certified(str(folder / f"{name}.pem"), str(folder / f"{name}.key"))
    Path(written.certificate).write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem))
    plain = serialization.NoEncryption()
    Path(written.key).write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return written
