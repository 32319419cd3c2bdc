"""AUTH, valid and invalid: a real Tarantool and our server agree on the session's user.

Refusals deliberately use the error of 2.11: 2.6 answers unknown users, users without a right to a session and
wrong passwords with different errors, which reveals the names of users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest

from iproto_server.protocol.auth import scramble
from tests.differential.both import Both, outcome
from tests.iproto_client import AUTH, TUPLE, USER_NAME, Answer, IprotoClient

CHAP = "chap-sha1"
USERS = {
    "known": [],
    "disabled": [("revoke", "session,usage")],
    "without_session": [("revoke", "session")],
    "without_usage": [("revoke", "usage")],
}
Proof = Callable[[bytes], list[object]]


def password(text: str, method: object = CHAP, *more: object) -> Proof:
    return lambda salt: [method, scramble(text, salt), *more]


def as_text(text: str) -> Proof:
    return lambda salt: [CHAP, scramble(text, salt).decode("utf-8", "surrogateescape")]


def exactly(*proof: object) -> Proof:
    return lambda salt: list(proof)


def packed(body: dict[int, object]) -> bytes:
    data: bytes = msgpack.packb(body, unicode_errors="surrogateescape")
    return data


ATTEMPTS: dict[str, Proof] = {
    "right": password("secret"),
    "right, as text": as_text("secret"),
    "right, and more": password("secret", CHAP, 7, None),
    "wrong": password("wrong"),
    "empty": password(""),
    "nothing": exactly(),
    "method alone": exactly(CHAP),
    "something alone": exactly(None),
    "short": exactly(CHAP, bytes(19)),
    "long": exactly(CHAP, bytes(21)),
    "no bytes": exactly(CHAP, b""),
    "no text": exactly(CHAP, ""),
    "nil": exactly(CHAP, None),
    "number": exactly(CHAP, 5),
    "array": exactly(CHAP, [1]),
    "nonsense": exactly(CHAP, bytes(range(20))),
}
MALFORMED = [
    "nothing",
    "method alone",
    "something alone",
    "short",
    "long",
    "no bytes",
    "no text",
    "nil",
    "number",
    "array",
]
REFUSED = (47, "User not found or supplied credentials are invalid")
NAMES = [*USERS, "without_password", "guest", "admin", "nobody", "", "public", "a_role"]
NEWER = {
    "any method": password("secret", "whatever"),
    "upper case": password("secret", "CHAP-SHA1"),
    "empty method": password("secret", ""),
}
"""2.6 treats every method as chap-sha1; our server and 2.11 know them by name."""


@pytest.fixture(scope="module")
def users(box_servers: tuple[Any, Any]) -> Iterator[None]:
    def both(name: str, *arguments: object) -> None:
        for server in box_servers:
            with IprotoClient(server.host, server.port) as client:
                client.call(name, *arguments)

    for name, changes in USERS.items():
        both("box.schema.user.create", name, {"password": "secret"})
        for verb, rights in changes:
            both(f"box.schema.user.{verb}", name, rights, "universe")
    both("box.schema.user.create", "without_password")
    both("box.schema.role.create", "a_role")
    yield
    for name in (*USERS, "without_password"):
        both("box.schema.user.drop", name)
    both("box.schema.role.drop", "a_role")


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize("name", NAMES)
def test_who_is_believed_and_what_others_are_told(both: Both, name: str) -> None:
    for attempt, proof in ATTEMPTS.items():

        def ask(client: IprotoClient, user: str) -> Answer:
            return client.request(AUTH, packed({USER_NAME: user, TUPLE: proof(client.salt)}))  # noqa: B023

        answer, theirs = ask(both.ours, name), ask(both.theirs, name)
        if attempt in MALFORMED and not theirs.ok:
            assert answer.failure[0] == 20
            assert outcome(answer) == outcome(ask(both.theirs, "known")), attempt
        elif theirs.ok or (attempt.startswith("right") and name in USERS):
            assert outcome(answer) == outcome(theirs), attempt
        else:
            assert theirs.failure[0] in (42, 45, 47)
            assert answer.failure == REFUSED, attempt
        both.call("box.session.user")
        # Without the right to call this, the user stays the same, and the next attempt begins as that user.
        both.call("box.session.su", "guest")


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize("attempt", NEWER)
def test_methods_have_names(both: Both, attempt: str) -> None:
    proof = NEWER[attempt](both.ours.salt)
    answer = both.ours.request(AUTH, {USER_NAME: "known", TUPLE: proof})
    assert answer.failure == (249, f"Unknown authentication method '{proof[0]}'")
    theirs = NEWER[attempt](both.theirs.salt)
    assert both.theirs.request(AUTH, {USER_NAME: "known", TUPLE: theirs}).ok


@pytest.mark.parametrize(
    "body",
    [
        {USER_NAME: "guest"},
        {TUPLE: [CHAP, bytes(20)]},
        {USER_NAME: 5, TUPLE: []},
        {USER_NAME: b"guest", TUPLE: []},
        {USER_NAME: "guest", TUPLE: {}},
        {USER_NAME: "guest", TUPLE: CHAP},
        {USER_NAME: "guest", TUPLE: None},
        {},
        b"",
    ],
)
def test_malformed_bodies(both: Both, body: dict[int, Any] | bytes) -> None:
    both.request(AUTH, body)
