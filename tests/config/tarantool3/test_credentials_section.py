"""Users and roles in a configuration file of Tarantool 3."""

from __future__ import annotations

from pathlib import Path

import pytest

from iproto_server.config.credentials import ConfiguredGrant, ConfiguredPrincipal, Credentials
from tests.config.tarantool3.cluster import load, refusal

USERS = "credentials.users"


def test_users_and_roles(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        credentials:
          roles:
            reader:
              privileges: [{permissions: [read], spaces: [all], sequences: [ids]}]
          users:
            guest: {roles: [public]}
            ann:
              password: secret
              roles: [reader, super]
              privileges:
              - {permissions: [read, write], universe: true}
              - {permissions: [execute], functions: [f, g], lua_call: [queue.put]}
            bob:
        """,
    )
    first, second = f"{USERS}.ann.privileges[1]", f"{USERS}.ann.privileges[2]"
    reading = "credentials.roles.reader.privileges[1]"
    assert config.credentials == Credentials(
        roles=(
            ConfiguredPrincipal(
                "reader",
                "credentials.roles.reader",
                grants=(
                    ConfiguredGrant(reading, ("read",), "space"),
                    ConfiguredGrant(reading, ("read",), "sequence", "ids"),
                ),
            ),
        ),
        users=(
            ConfiguredPrincipal("guest", f"{USERS}.guest", roles=("public",)),
            ConfiguredPrincipal(
                "ann",
                f"{USERS}.ann",
                "secret",
                ("reader", "super"),
                (
                    ConfiguredGrant(first, ("read", "write"), "universe"),
                    ConfiguredGrant(second, ("execute",), "function", "f"),
                    ConfiguredGrant(second, ("execute",), "function", "g"),
                    ConfiguredGrant(second, ("execute",), "function", "queue.put"),
                ),
            ),
            ConfiguredPrincipal("bob", f"{USERS}.bob"),
        ),
    )


def test_a_file_without_users(tmp_path: Path) -> None:
    assert load(tmp_path, "credentials: {users: {}, roles: }").credentials is None


def test_passwords_are_not_shown(tmp_path: Path) -> None:
    assert "secret" not in repr(load(tmp_path, "credentials: {users: {ann: {password: secret}}}"))


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("{password: 12345}", "ann.password: a text is expected, in quotes if it looks like a number"),
        ("{password: ''}", "ann.password: the password is empty"),
        ("{roles: super}", "ann.roles: a list of names is expected"),
        ("{roles: [1]}", "ann.roles: a list of names is expected"),
        ("[a]", "ann: a mapping of names to values is expected"),
        ("{privileges: {}}", "ann.privileges: a list is expected"),
        ("{privileges: [read]}", "ann.privileges[1]: a mapping with permissions and objects is expected"),
        ("{privileges: [{universe: true}]}", "ann.privileges[1].permissions: a list of names is expected"),
        ("{privileges: [{permissions: [read]}]}", "ann.privileges[1]: permissions and objects are expected"),
        ("{privileges: [{permissions: [], universe: true}]}", "privileges[1]: permissions and objects are"),
        (
            "{privileges: [{permissions: [reed], universe: true}]}",
            'privileges[1].permissions: unknown permission "reed", did you mean "read"?',
        ),
        ("{privileges: [{permissions: [read], universe: 1}]}", "universe: true or false is expected"),
        ("{privileges: [{permissions: [read], spaces: a}]}", "privileges[1].spaces: a list of names"),
        (
            "{privileges: [{permissions: [read], space: [a]}]}",
            'privileges[1].space: unknown option, did you mean "spaces"?',
        ),
        ("{privileges: [{permissions: [execute], lua_call: [all]}]}", "lua_call: name the procedures"),
    ],
)
def test_a_wrong_user(tmp_path: Path, user: str, message: str) -> None:
    found = refusal(tmp_path, f"credentials: {{users: {{ann: {user}}}}}")
    assert found.startswith("config.yaml: credentials.users.ann")
    assert message in found
    assert "12345" not in found


def test_guest_has_no_password(tmp_path: Path) -> None:
    text = "credentials: {users: {guest: {password: secret}}}"
    assert (
        refusal(tmp_path, text)
        == "config.yaml: credentials.users.guest.password: guest cannot have a password"
    )
