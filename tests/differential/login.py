"""Users with a common password, and logging in as one of them."""

from __future__ import annotations

import hashlib
from typing import Final

from tests.iproto_client import AUTH, TUPLE, USER_NAME, Answer, IprotoClient

PASSWORD: Final = "secret"
SECRET: Final = {"chap-sha1": "FOZVZ6vbUTXQz9mnCzAywXmknuc="}
"""The password in the form of `_user`."""


def authenticate(client: IprotoClient, name: str) -> Answer:
    """Log in with that password, successfully or not."""
    once = hashlib.sha1(PASSWORD.encode()).digest()
    salted = hashlib.sha1(client.salt[:20] + hashlib.sha1(once).digest()).digest()
    scramble = bytes(left ^ right for left, right in zip(once, salted, strict=True))
    return client.request(AUTH, {USER_NAME: name, TUPLE: ["chap-sha1", scramble]})
