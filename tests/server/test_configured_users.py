"""Users and roles of a configuration file: made at the start, with their passwords and privileges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import refused, run
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION
from tests.server.login import log_in

FILE = """
credentials:
  roles:
    reader: {privileges: [{permissions: [read], spaces: [queue]}]}
    worker: {roles: [reader], privileges: [{permissions: [execute], lua_call: [queue.take, queue.ack]}]}
  users:
    ann: {password: secret, roles: [worker]}
    boss: {password: '{{ context.boss }}', roles: [super]}
    bob:
config: {context: {boss: {from: env, env: BOSS}}}
security: {disable_guest: true, auth_type: AUTH}
"""


def config(tmp_path: Path, text: str = FILE, auth_type: str = "chap-sha1") -> str:
    file = tmp_path / "config.yaml"
    file.write_text(text.replace("AUTH", auth_type))
    return str(file)


def made(directory: Path) -> Path:
    directory.mkdir()
    return directory


BOSS = {"BOSS": "of a variable"}


def test_users_have_what_the_file_says(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server([QUEUE_APPLICATION], ["--config", config(tmp_path)], environment=BOSS)
    with IprotoClient.at(server.address) as guest, IprotoClient.at(server.address) as ann:
        assert guest.call("queue.take", 0).failure == (
            42,
            "Execute access to function 'queue.take' is denied for user 'guest'",
        )
        assert log_in(ann, "ann", "secret").ok
        assert ann.call("queue.take", 0).data == []
        assert ann.call("queue.put", 1).error_code == 42
        assert ann.everything(512).data == []
    with IprotoClient.at(server.address) as boss:
        assert not log_in(boss, "boss", "secret").ok
        assert log_in(boss, "boss", "of a variable").ok
        assert boss.call("queue.put", 1).ok
        users = [row[2] for row in boss.everything(304).data if row[0] > 31 or row[3] == "user"]
        assert users == ["guest", "admin", "reader", "worker", "ann", "boss", "bob"]
    with IprotoClient.at(server.address) as bob:
        assert not log_in(bob, "bob", "").ok


@pytest.mark.parametrize("auth_type", ["chap-sha1", "pap-sha256"])
def test_a_restart_changes_nothing(start_server: StartServer, tmp_path: Path, auth_type: str) -> None:
    data = made(tmp_path / "data")
    options = ["--config", config(tmp_path, auth_type=auth_type), "--listen", f"unix:{tmp_path}/socket"]
    start_server([QUEUE_APPLICATION], options, work_dir=data, environment=BOSS).stop()
    rows = run("cat", "--show-system", data).output
    assert "boss" in rows
    start_server([QUEUE_APPLICATION], options, work_dir=data, environment=BOSS).stop()
    assert run("cat", "--show-system", data).output == rows


def test_a_new_password_in_the_file_is_set(start_server: StartServer, tmp_path: Path) -> None:
    data, options = made(tmp_path / "data"), ["--config", config(tmp_path)]
    start_server([QUEUE_APPLICATION], options, work_dir=data, environment=BOSS).stop()
    config(tmp_path, FILE.replace("password: secret", "password: changed"))
    server = start_server([QUEUE_APPLICATION], options, work_dir=data, environment=BOSS)
    with IprotoClient.at(server.address) as ann:
        assert not log_in(ann, "ann", "secret").ok
        assert log_in(ann, "ann", "changed").ok


def test_other_machines_may_connect_if_the_file_has_a_password(
    start_server: StartServer, tmp_path: Path
) -> None:
    text = "credentials: {users: {ann: {password: secret}}}\niproto: {listen: [{uri: '127.0.0.1:0'}]}"
    server = start_server([QUEUE_APPLICATION], ["--config", config(tmp_path, text), "--guest", "none"])
    assert "no client can log in" not in server.process.output


def test_a_privilege_on_a_missing_space_is_a_warning(start_server: StartServer, tmp_path: Path) -> None:
    text = "credentials: {users: {ann: {privileges: [{permissions: [read], spaces: [later]}]}}}"
    server = start_server([QUEUE_APPLICATION], ["--config", config(tmp_path, text)])
    server.process.wait_for(
        r"warn credentials.users.ann.privileges\[1\]: Space 'later' does not exist;"
        r" it is granted at the next start"
    )


@pytest.mark.parametrize(
    ("credentials", "reason"),
    [
        ("users: {ann: {roles: [absent]}}", "credentials.users.ann.roles: Role 'absent' is not found"),
        (
            "roles: {a: {privileges: [{permissions: [session], universe: true}]}}",
            "credentials.roles.a.privileges[1]: Incorrect grant arguments: system privilege",
        ),
        (
            "users: {a: {privileges: [{permissions: [execute], sequences: [all]}]}}",
            "credentials.users.a.privileges[1]: Unsupported sequence privilege 'execute'",
        ),
        ("roles: {a: {roles: [b]}, b: {roles: [a]}}", "credentials.roles.b.roles: Granting role"),
        ("users: {super: {roles: [public]}}", 'credentials.users.super: there is a role of the name "super"'),
        ("roles: {guest: {}}", 'credentials.roles.guest: there is a user of the name "guest"'),
    ],
)
def test_impossible_users_are_refused(tmp_path: Path, credentials: str, reason: str) -> None:
    data = tmp_path / "data"
    text = f"credentials: {{{credentials}}}"
    message = refused(data, QUEUE_APPLICATION, "--config", config(tmp_path, text), status=2)
    assert message.startswith(reason)
    assert not data.exists()
