"""The hash of a password."""

from iproto_server.password import EMPTY_PASSWORD_HASH, password_hash


def test_hashes_are_those_that_tarantool_keeps() -> None:
    assert password_hash("") == EMPTY_PASSWORD_HASH == "vhvewKp0tNyweZQ+cFKAlsyphfg="
    assert password_hash("secret") == "FOZVZ6vbUTXQz9mnCzAywXmknuc="


def test_any_text_can_be_a_password() -> None:
    assert len(password_hash("pässwörd \udcff")) == 28
    assert password_hash("a") != password_hash("A")
