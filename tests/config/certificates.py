"""Keys and certificates for tests of TLS, made anew for every run."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KEY_PASSWORD = "sesame"


class Certificates:
    """Files in a directory: an authority, and what it has signed for a server and a client.

    Args:
        directory: Where the files come.

    Attributes:
        authority: The authority's certificate.
        server, client: Their certificates; the keys are in files with the suffix `.key`.
        encrypted_key: The server's key, encrypted with KEY_PASSWORD.
        stranger: A client's certificate that another authority has signed.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = directory / "authority.crt"
        self.server, self.client = directory / "server.crt", directory / "client.crt"
        self.encrypted_key = directory / "encrypted.key"
        self.stranger = directory / "stranger.crt"
        key, certificate = _authority("tests")
        self.authority.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        server_key = self._issue("server", key, certificate)
        self._issue("client", key, certificate)
        self._issue("stranger", *_authority("strangers"))
        self.encrypted_key.write_bytes(
            _pem(server_key, serialization.BestAvailableEncryption(KEY_PASSWORD.encode()))
        )

    def listen(self, address: str = "127.0.0.1:0", **parameters: object) -> str:
        """An address for `--listen`: TLS with the server's key and certificate.

        Args:
            address: Where.
            parameters: More of the query, or instead of these two.
        """
        given = {"ssl_key_file": self.key_of(self.server), "ssl_cert_file": self.server, **parameters}
        return f"{address}?transport=ssl" + "".join(f"&{name}={value}" for name, value in given.items())

    @staticmethod
    def key_of(certificate: Path) -> Path:
        """The file with its key."""
        return certificate.with_suffix(".key")

    def context(self, certificate: Path | None = None) -> ssl.SSLContext:
        """What a client needs that checks the server.

        Args:
            certificate: What it shows itself; None for nothing.
        """
        context = ssl.create_default_context(cafile=str(self.authority))
        context.check_hostname = False
        if certificate is not None:
            context.load_cert_chain(certificate, self.key_of(certificate))
        return context

    def _issue(
        self, name: str, key: ec.EllipticCurvePrivateKey, authority: x509.Certificate
    ) -> ec.EllipticCurvePrivateKey:
        own = ec.generate_private_key(ec.SECP256R1())
        loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        certificate = (
            _builder(name, authority.subject, own)
            .add_extension(x509.SubjectAlternativeName([loopback]), critical=False)
            .sign(key, hashes.SHA256())
        )
        path = self.directory / f"{name}.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        self.key_of(path).write_bytes(_pem(own, serialization.NoEncryption()))
        return own


def _authority(name: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    return key, _builder(name, subject, key).add_extension(constraints, critical=True).sign(
        key, hashes.SHA256()
    )


def _builder(name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _pem(key: ec.EllipticCurvePrivateKey, encryption: serialization.KeySerializationEncryption) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, encryption
    )
