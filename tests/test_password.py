"""The hash of a password."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.password import (
    EMPTY_PASSWORD_HASH,
    fits_salted,
    is_salted_hash,
    password_hash,
    salted_hash,
)


def test_hashes_are_those_that_tarantool_keeps() -> None:
    assert password_hash("") == EMPTY_PASSWORD_HASH == "vhvewKp0tNyweZQ+cFKAlsyphfg="
    assert password_hash("secret") == "FOZVZ6vbUTXQz9mnCzAywXmknuc="


def test_any_text_can_be_a_password() -> None:
    assert len(password_hash("pässwörd \udcff")) == 28
    assert password_hash("a") != password_hash("A")


@given(st.text(max_size=20))
def test_a_salted_hash_fits_its_password_only(password: str) -> None:
    stored = salted_hash(password)
    assert fits_salted(stored, password)
    assert not fits_salted(stored, password + "x")
    assert salted_hash(password) != stored


@pytest.mark.parametrize(
    "stored",
    [None, "", [], {}, ["", ""], [5, 5], salted_hash("x")[:1], [*salted_hash("x"), ""], ["?" * 28, "?" * 44]],
)
def test_what_is_no_salted_hash_fits_no_password(stored: object) -> None:
    assert not is_salted_hash(stored)
    assert not fits_salted(stored, "")
