"""The parameters of a TLS address and the files that they name."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from iproto_server.config.address import Address
from iproto_server.config.tls import TlsParameters
from tests.config.certificates import KEY_PASSWORD, Certificates

PAIR = "transport=ssl&ssl_key_file=k&ssl_cert_file=c"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def parameters(certificates: Certificates, **more: Any) -> TlsParameters:
    tls = Address.parse_listen(certificates.listen(**more)).tls
    assert tls is not None
    return tls


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:3301?transport=plain", Address("localhost", 3301)),
        (f"localhost:3301?{PAIR}", Address("localhost", 3301, tls=TlsParameters("k", "c"))),
        (f"unix:a.sock?{PAIR}", Address(path="a.sock", tls=TlsParameters("k", "c"))),
        (
            f"3301?{PAIR}&ssl_password=a%26b%25",
            Address(port=3301, tls=TlsParameters("k", "c", password="a&b%")),
        ),
        (
            f"[::1]:1?{PAIR}&ssl_ca_file=a&ssl_ciphers=X:Y&ssl_password_file=p",
            Address("::1", 1, tls=TlsParameters("k", "c", "a", "X:Y", password_file="p")),
        ),
    ],
)
def test_parameters_stand_behind_the_address(text: str, address: Address) -> None:
    assert Address.parse_listen(text) == address


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", 'there is no parameter ""'),
        ("transport", 'the parameter "transport" has no value'),
        ("transport=tls", 'the transport "tls" is neither plain nor ssl'),
        ("transport=ssl", 'transport=ssl needs "ssl_key_file"'),
        ("transport=ssl&ssl_key_file=k", 'transport=ssl needs "ssl_cert_file"'),
        (f"{PAIR}&ssl_ca_file=", 'the parameter "ssl_ca_file" has no value'),
        (f"{PAIR}&ssl_key_file=k", 'the parameter "ssl_key_file" is given twice'),
        (f"{PAIR}&ssl_verify=yes", 'there is no parameter "ssl_verify"'),
        (f"{PAIR}&key_file=k", 'there is no parameter "key_file"'),
        ("ssl_key_file=k", '"ssl_key_file" needs transport=ssl'),
        ("transport=plain&ssl_ciphers=X", '"ssl_ciphers" needs transport=ssl'),
    ],
)
def test_wrong_parameters_are_told(query: str, reason: str) -> None:
    with pytest.raises(ValueError, match="localhost:1") as raised:
        Address.parse_listen(f"localhost:1?{query}")
    assert str(raised.value) == f'"localhost:1": {reason}'


def test_passwords_are_not_shown() -> None:
    address = Address.parse_listen(f"localhost:1?{PAIR}&ssl_password={KEY_PASSWORD}")
    assert KEY_PASSWORD not in f"{address} {address!r}"


def test_certificates_of_clients_are_wanted_with_an_authority_only(certificates: Certificates) -> None:
    assert parameters(certificates).context(Path()).verify_mode is ssl.CERT_NONE
    context = parameters(certificates, ssl_ca_file=certificates.authority).context(Path())
    assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("mode", "is_told"), [(0o600, False), (0o640, False), (0o660, False), (0o644, True), (0o602, True)]
)
def test_a_key_file_that_every_user_can_read_or_change_is_told(
    tmp_path: Path, mode: int, is_told: bool
) -> None:
    own = Certificates(tmp_path)
    key = own.key_of(own.server)
    key.chmod(mode)
    expected = f'ssl_key_file "{key}" has mode {mode:04o}: every user can read or change it'
    assert parameters(own).warnings(Path()) == ([expected] if is_told else [])


def test_a_file_of_passwords_that_every_user_can_read_is_told_too(tmp_path: Path) -> None:
    own = Certificates(tmp_path)
    own.key_of(own.server).chmod(0o600)
    passwords = tmp_path / "passwords"
    passwords.touch()
    passwords.chmod(0o644)
    expected = f'ssl_password_file "{passwords}" has mode 0644: every user can read or change it'
    assert parameters(own, ssl_password_file=passwords).warnings(Path()) == [expected]


def test_relative_paths_start_where_they_are_told_to(certificates: Certificates) -> None:
    relative = parameters(certificates, ssl_key_file="server.key", ssl_cert_file="server.crt")
    relative.context(certificates.directory)
    with pytest.raises(ValueError, match="No such file"):
        relative.context(certificates.directory / "elsewhere")


def test_relative_paths_lead_out_of_a_directory_that_is_not_there_yet(certificates: Certificates) -> None:
    outside = parameters(certificates, ssl_key_file="../server.key", ssl_cert_file="../server.crt")
    outside.context(certificates.directory / "data")


def test_ciphers_are_chosen(certificates: Certificates) -> None:
    name = "ECDHE-ECDSA-AES256-GCM-SHA384"
    context = parameters(certificates, ssl_ciphers=name).context(Path())
    assert [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] == "TLSv1.2"] == [name]


@pytest.mark.parametrize(
    ("password", "lines"), [(KEY_PASSWORD, None), ("wrong", f"x\n{KEY_PASSWORD}\n"), (None, KEY_PASSWORD)]
)
def test_a_key_is_decrypted_with_any_of_the_passwords(
    certificates: Certificates, tmp_path: Path, password: str | None, lines: str | None
) -> None:
    given: dict[str, Any] = {"ssl_key_file": certificates.encrypted_key}
    if password is not None:
        given["ssl_password"] = password
    if lines is not None:
        given["ssl_password_file"] = tmp_path / "passwords"
        (tmp_path / "passwords").write_text(lines)
    parameters(certificates, **given).context(Path())


def test_a_password_that_is_not_needed_does_no_harm(certificates: Certificates) -> None:
    parameters(certificates, ssl_password="whatever").context(Path())


def test_files_that_cannot_be_used_are_told(certificates: Certificates, tmp_path: Path) -> None:
    garbage, missing = tmp_path / "garbage", tmp_path / "missing"
    garbage.write_bytes(b"\x00\xffno certificate")
    key, encrypted = certificates.key_of(certificates.server), certificates.encrypted_key
    other = certificates.key_of(certificates.client)
    for given, reason in (
        ({"ssl_key_file": missing}, f'ssl_key_file "{missing}": No such file or directory'),
        ({"ssl_cert_file": missing}, f'ssl_cert_file "{missing}": No such file or directory'),
        ({"ssl_ca_file": missing}, f'ssl_ca_file "{missing}": No such file or directory'),
        ({"ssl_password_file": missing}, f'ssl_password_file "{missing}": No such file or directory'),
        ({"ssl_key_file": tmp_path}, f'ssl_key_file "{tmp_path}": Is a directory'),
        ({"ssl_key_file": garbage}, f'ssl_key_file "{garbage}" holds no private key that can be used'),
        ({"ssl_key_file": certificates.server}, f'"{certificates.server}" holds no private key'),
        ({"ssl_cert_file": garbage}, f'ssl_cert_file "{garbage}" holds no certificate that can be used'),
        ({"ssl_cert_file": key}, f'ssl_cert_file "{key}" holds no certificate that can be used'),
        ({"ssl_ca_file": garbage}, f'ssl_ca_file "{garbage}" holds no certificate that can be used'),
        ({"ssl_key_file": other}, f'"{other}" is not the key of ssl_cert_file "{certificates.server}"'),
        ({"ssl_ciphers": "ROT13"}, 'ssl_ciphers "ROT13" names no cipher there is'),
        ({"ssl_key_file": encrypted}, f'"{encrypted}" cannot be decrypted without a password'),
        (
            {"ssl_key_file": encrypted, "ssl_password": "wrong"},
            f'"{encrypted}" cannot be decrypted with any of the passwords given',
        ),
    ):
        with pytest.raises(ValueError) as raised:
            parameters(certificates, **given).context(Path())
        assert reason in str(raised.value), given
