"""TLS parameters of a listening address, after `?` in `--listen`, and their `ssl` context.

Source: Tarantool manual, "Traffic encryption"; the names are those of its URI parameters and of the
connectors.
"""

from __future__ import annotations

import os
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote

_PREFIX = "ssl_"
_PARAMETERS = (
    "transport",
    "ssl_key_file",
    "ssl_cert_file",
    "ssl_ca_file",
    "ssl_ciphers",
    "ssl_password",
    "ssl_password_file",
)


@dataclass(frozen=True, slots=True)
class TlsParameters:
    """The TLS parameters of a listening address.

    Parameters:
        key_file: path of the server's private key, PEM.
        cert_file: path of its certificate, with the chain behind it, PEM.
        ca_file: path of the authorities that clients' certificates are checked against; "": clients need
            none.
        ciphers: names of cipher suites for TLS 1.2, separated by colons; "": OpenSSL's choice.
        password: password of the key; "": none, or one in `password_file`.
        password_file: path of a file with passwords to try, one per line; "": none.
    """

    key_file: str
    cert_file: str
    ca_file: str = ""
    ciphers: str = ""
    password: str = field(default="", repr=False)
    password_file: str = ""

    @classmethod
    def parse(cls, query: str) -> TlsParameters | None:
        """Parse the parameters of an address.

        Parameters:
            query: such as `transport=ssl&ssl_key_file=server.key&ssl_cert_file=server.crt`; values may have
                characters encoded as `%XX`.

        Returns: the parameters; None if the transport is plain.

        Raises:
            ValueError: a transport or parameter is unknown, missing, repeated or without a value; the message
                names it in one line.
        """
        given: dict[str, str] = {}
        for part in query.split("&"):
            name, _, value = part.partition("=")
            if name not in _PARAMETERS:
                raise ValueError(f'there is no parameter "{name}"')
            if not value:
                raise ValueError(f'the parameter "{name}" has no value')
            if name in given:
                raise ValueError(f'the parameter "{name}" is given twice')
            given[name] = unquote(value)
        transport = given.pop("transport", "plain")
        if transport == "plain":
            for name in given:
                raise ValueError(f'"{name}" needs transport=ssl')
            return None
        if transport != "ssl":
            raise ValueError(f'the transport "{transport}" is neither plain nor ssl')
        for name in ("ssl_key_file", "ssl_cert_file"):
            if name not in given:
                raise ValueError(f'transport=ssl needs "{name}"')
        return cls(**{name.removeprefix(_PREFIX): value for name, value in given.items()})

    def context(self, directory: Path) -> ssl.SSLContext:
        """Read the files and make the TLS context.

        Parameters:
            directory: start of relative paths; it need not exist.

        Raises:
            ValueError: a file is missing, unreadable or invalid; the message names it in one line.
        """
        key, certificate = _located(directory, self.key_file), _located(directory, self.cert_file)
        _check_readable("ssl_key_file", key)
        _check_readable("ssl_cert_file", certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        _load_certificates("ssl_cert_file", certificate)
        self._load_key(context, key, certificate, directory)
        if self.ca_file:
            authorities = _located(directory, self.ca_file)
            _check_readable("ssl_ca_file", authorities)
            _load_certificates("ssl_ca_file", authorities, context)
            context.verify_mode = ssl.CERT_REQUIRED
        if self.ciphers:
            try:
                context.set_ciphers(self.ciphers)
            except ssl.SSLError:
                raise ValueError(f'ssl_ciphers "{self.ciphers}" names no cipher there is') from None
        return context

    def warnings(self, directory: Path) -> list[str]:
        """Return a warning for each secret file that all users of the machine can read or change.

        Parameters:
            directory: as for `context`.
        """
        found = []
        for name, given in (("ssl_key_file", self.key_file), ("ssl_password_file", self.password_file)):
            if given:
                path = _located(directory, given)
                mode = stat.S_IMODE(path.stat().st_mode)
                if mode & (stat.S_IROTH | stat.S_IWOTH):
                    found.append(f'{name} "{path}" has mode {mode:04o}: every user can read or change it')
        return found

    def _load_key(self, context: ssl.SSLContext, key: Path, certificate: Path, directory: Path) -> None:
        """Load the key with each of the passwords, then without one, as Tarantool does."""
        passwords = [self.password] if self.password else []
        if self.password_file:
            path = _located(directory, self.password_file)
            passwords += _check_readable("ssl_password_file", path).splitlines()
        for password in [*passwords, None]:
            try:
                context.load_cert_chain(certificate, key, _no_password if password is None else password)
            except ssl.SSLError as error:
                if error.reason == "KEY_VALUES_MISMATCH":
                    reason = f'ssl_key_file "{key}" is not the key of ssl_cert_file "{certificate}"'
                    raise ValueError(reason) from None
            except _PasswordNeeded:
                reason = "with any of the passwords given" if passwords else "without a password"
                raise ValueError(f'ssl_key_file "{key}" cannot be decrypted {reason}') from None
            else:
                return
        raise ValueError(f'ssl_key_file "{key}" holds no private key that can be used')


class _PasswordNeeded(Exception):
    """The key is encrypted, and no password matches."""


def _no_password() -> NoReturn:
    # Otherwise OpenSSL would ask on the terminal.
    raise _PasswordNeeded


def _located(directory: Path, name: str) -> Path:
    """Return the path of a file; unlike in the system, `..` may follow a missing directory."""
    return Path(os.path.realpath(directory / name))


def _check_readable(parameter: str, path: Path) -> str:
    """Return the text of a file. Raises ValueError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ValueError(f'{parameter} "{path}": {error.strerror}') from error


def _load_certificates(parameter: str, path: Path, context: ssl.SSLContext | None = None) -> None:
    """Load a file's certificates as authorities, or only check that this is possible."""
    try:
        (context or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)).load_verify_locations(path)
    except ssl.SSLError:
        raise ValueError(f'{parameter} "{path}" holds no certificate that can be used') from None
