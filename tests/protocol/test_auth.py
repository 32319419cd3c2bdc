"""AUTH: checks of passwords and scrambles."""

import hashlib
import hmac
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.errors import BoxError
from iproto_server.password import EMPTY_PASSWORD_HASH, password_hash, salted_hash
from iproto_server.protocol import auth

SALT = bytes(range(32))
HASH = password_hash("secret")
CHAP = {"chap-sha1": HASH}
PAP = {"pap-sha256": salted_hash("secret")}

passwords = st.text(max_size=20)
salts = st.binary(min_size=32, max_size=32)


def test_only_20_bytes_of_the_salt_take_part() -> None:
    assert auth.scramble("secret", SALT) == auth.scramble("secret", SALT[:20])


@given(passwords.filter(lambda text: text.isascii()), salts)
def test_the_right_password_is_accepted(password: str, salt: bytes) -> None:
    assert auth.verify(password_hash(password), auth.scramble(password, salt), salt)


@given(passwords, passwords, salts, salts)
def test_wrong_passwords_and_salts_are_refused(one: str, other: str, salt: bytes, late: bytes) -> None:
    one, other = one.encode("utf-8", "replace").decode(), other.encode("utf-8", "replace").decode()
    stored = password_hash(one)
    assert auth.verify(stored, auth.scramble(other, salt), salt) == (one == other)
    assert auth.verify(stored, auth.scramble(one, salt), late) == (salt[:20] == late[:20])


@given(st.binary(max_size=40), st.text(max_size=40), salts)
def test_no_scramble_fits_a_hash_by_accident_or_breaks_the_check(
    sent: bytes, stored: str, salt: bytes
) -> None:
    assert not auth.verify(stored, sent, salt)
    assert not auth.verify(HASH, sent, salt)


class Wrong(Exception):
    """The password does not match."""


def check(
    stored: Mapping[str, object],
    proof: list[object],
    *,
    is_guest: bool = False,
    is_confidential: bool = False,
) -> None:
    if is_guest and not proof and auth.needs_no_proof(stored):
        return
    if not auth.is_right(stored, auth.check_proof(proof, is_confidential), SALT):
        raise Wrong


@pytest.mark.parametrize(
    "proof", [auth.scramble("secret", SALT), auth.scramble("secret", SALT).decode("utf-8", "surrogateescape")]
)
def test_a_scramble_may_come_as_binary_or_as_text(proof: bytes | str) -> None:
    check(CHAP, ["chap-sha1", proof])


def test_guest_needs_no_proof_unless_it_has_a_password() -> None:
    empty = {"chap-sha1": EMPTY_PASSWORD_HASH}
    check({}, [], is_guest=True)
    check(empty, [], is_guest=True)
    check(empty, ["chap-sha1", auth.scramble("", SALT)], is_guest=True)
    with pytest.raises(BoxError, match="authentication request body"):
        check(CHAP, [], is_guest=True)


@pytest.mark.parametrize(
    ("proof", "code", "text"),
    [
        ([], 20, "Invalid MsgPack - authentication request body"),
        (["chap-sha1"], 20, "Invalid MsgPack - authentication request body"),
        ([1, bytes(20)], 20, "Invalid MsgPack - authentication request body"),
        (["chap-sha1", 5], 20, "Invalid MsgPack - authentication scramble"),
        (["chap-sha1", b"x"], 20, "Invalid MsgPack - invalid scramble size"),
        (["md5", "secret"], 249, "Unknown authentication method 'md5'"),
        (["CHAP-SHA1", bytes(20)], 249, "Unknown authentication method 'CHAP-SHA1'"),
        (["", bytes(20)], 249, "Unknown authentication method ''"),
        (
            ["pap-sha256", "secret"],
            5,
            "Authentication method 'pap-sha256' does not support unencrypted connection",
        ),
    ],
)
def test_refused_proofs_name_the_reason(proof: list[object], code: int, text: str) -> None:
    with pytest.raises(BoxError) as raised:
        check(CHAP, proof)
    assert (raised.value.code, raised.value.message) == (code, text)


def test_a_user_without_a_hash_has_no_password_that_fits() -> None:
    with pytest.raises(Wrong):
        check({}, ["chap-sha1", auth.scramble("", SALT)])
    with pytest.raises(Wrong):
        check(CHAP, ["pap-sha256", "secret"], is_confidential=True)
    with pytest.raises(Wrong):
        check(PAP, ["chap-sha1", auth.scramble("secret", SALT)])


@pytest.mark.parametrize("password", ["secret", b"secret"])
def test_a_password_in_clear_may_come_as_binary_or_as_text(password: bytes | str) -> None:
    check(PAP, ["pap-sha256", password], is_confidential=True)


@pytest.mark.parametrize("sent", ["", "Secret", "secret "])
def test_another_password_in_clear_does_not_fit(sent: str) -> None:
    with pytest.raises(Wrong):
        check(PAP, ["pap-sha256", sent], is_confidential=True)


@pytest.mark.parametrize("sent", [None, 5, [], {}])
def test_a_password_in_clear_is_text(sent: object) -> None:
    with pytest.raises(BoxError, match="Invalid MsgPack - authentication request body"):
        check(PAP, ["pap-sha256", sent], is_confidential=True)


@pytest.mark.parametrize(
    "stored", [None, {}, {"chap-sha1": 5, "pap-sha256": "x"}, {"chap-sha1": "", "pap-sha256": []}]
)
def test_no_proof_fits_where_there_is_no_user_or_no_hash(stored: dict[str, object] | None) -> None:
    for password in ("", "secret"):
        for proof in (["chap-sha1", auth.scramble(password, SALT)], ["pap-sha256", password]):
            assert not auth.is_right(stored, auth.check_proof(proof, True), SALT)


@pytest.mark.parametrize("method", ["chap-sha1", "pap-sha256"])
def test_the_work_is_the_same_whether_there_is_such_a_user_or_not(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def counted(module: ModuleType, name: str) -> None:
        function = getattr(module, name)

        def count(*arguments: Any, **options: Any) -> Any:
            done.append(name)
            return function(*arguments, **options)

        monkeypatch.setattr(module, name, count)

    counted(hashlib, "sha1")
    counted(hashlib, "sha256")
    counted(hmac, "compare_digest")
    sent: object = auth.scramble("wrong", SALT) if method == "chap-sha1" else "wrong"
    proof = auth.check_proof([method, sent], True)
    seen = []
    for stored in ({**CHAP, **PAP}, {}, None):
        done.clear()
        assert not auth.is_right(stored, proof, SALT)
        seen.append(list(done))
    assert seen[0] == seen[1] == seen[2]
    assert "compare_digest" in seen[0]
