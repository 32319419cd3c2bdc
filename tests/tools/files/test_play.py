"""`iproto-server play`: rows of files become requests to a server, this one or Tarantool."""

from __future__ import annotations

import contextlib
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from iproto_server.codec import msgpack as codec
from iproto_server.config.address import Address
from iproto_server.storage.xlog import Row, RowType, XlogWriter, encode_row, insert_body
from iproto_server.tools.client import ServerUri
from tests.command_line import run
from tests.conftest import StartServer, StartTarantool
from tests.iproto_client import IprotoClient
from tests.storage.files import TIMESTAMP, deletion, header, insertion, replacement, update, upsert
from tests.tools.files.sample_files import write_log, write_rows, write_snapshot

APPLICATION = """
from iproto_server import Application, Box

app = Application("target")


@app.setup
def create(box: Box) -> None:
    space = box.schema.create_space("t", id=512, if_not_exists=True)
    space.create_index("pk", parts=[(0, "unsigned")], if_not_exists=True)
    box.schema.user.create("player", password="s:e@cret", if_not_exists=True)
    box.schema.user.grant("player", "super", if_not_exists=True)
"""

REAL_APPLICATION = """
box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
box.schema.user.create('player', {password = 's:e@cret'})
box.schema.user.grant('player', 'super')
box.schema.space.create('t', {id = 512}):create_index('pk')
"""


class Target:
    """A server that is played to; it has an empty space 512, and a user with a password.

    Args:
        address: Where it listens.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    def rows(self, space_id: int = 512) -> list[bytes]:
        """Every row of a space, packed."""
        with IprotoClient.at(self.address) as client:
            answer = client.everything(space_id)
        assert answer.ok, answer
        [(_, data)] = codec.split_map(answer.raw_body)
        return codec.split_array(data)

    def values(self) -> list[Any]:
        """Every row of space 512."""
        return [codec.unpack(row) for row in self.rows()]


@pytest.fixture(params=["ours", pytest.param("theirs", marks=pytest.mark.real_tarantool)])
def target(
    request: pytest.FixtureRequest,
    start_server: StartServer,
    real_tarantool: StartTarantool,
    tmp_path_factory: pytest.TempPathFactory,
) -> Target:
    """Our server, and a real Tarantool."""
    if request.param == "theirs":
        return Target(real_tarantool(REAL_APPLICATION).address)
    directory = tmp_path_factory.mktemp("target")
    (directory / "target.py").write_text(APPLICATION)
    return Target(start_server(["target:app"], work_dir=directory).address)


class TestRows:
    def test_every_kind_of_request(self, target: Target, tmp_path: Path) -> None:
        log = write_log(
            tmp_path / "1.xlog",
            [
                [insertion(512, 1, "one", 10), insertion(512, 2, "two", 20), insertion(512, 3, "three")],
                [replacement(512, 1, "uno", 10)],
                [update(512, [1], [["+", 2, 5], ["!", -1, "last"]])],
                [upsert(512, [2, "none"], [["=", 1, "due"]])],
                [upsert(512, [4, "four"], [["=", 1, "quattro"]])],
                [deletion(512, 3)],
            ],
        )
        assert run("play", target.address, log) == (0, "", [])
        assert target.values() == [[1, "uno", 15, "last"], [2, "due", 20], [4, "four"]]

    def test_field_numbers_that_count_from_1(self, target: Target, tmp_path: Path) -> None:
        operations = [["=", 2, "ONE"], [":", 3, 2, 1, "--"], ["#", -1, 1]]
        log = write_log(
            tmp_path / "1.xlog",
            [
                [insertion(512, 1, "one", "abc", 0), update(512, [1], operations, 1)],
                [upsert(512, [1], [["=", 2, "uno"]], 1)],
            ],
        )
        assert run("play", target.address, log).status == 0
        assert target.values() == [[1, "uno", "a--c"]]

    def test_values_arrive_byte_for_byte(self, target: Target, tmp_path: Path) -> None:
        rows = [
            b"\x92\x01\xca\x3d\xcc\xcc\xcd",  # a float
            b"\x92\x02\xcf" + bytes(7) + b"\x05",  # more bytes than needed
            b"\x92\x03\xa2\xff\xfe",  # no UTF-8
            b"\x92\x04\xc4\x02\xff\xfe",
            b"\x92\x05\xc7\x03\x09abc",  # an extension type that nobody knows
            codec.pack([6, Decimal("1.50"), uuid.UUID(int=5), None, {"a": [1.5, {}]}]),
        ]
        log = write_raw(tmp_path / "1.xlog", rows)
        assert run("play", target.address, log) == (0, "", [])
        assert target.rows() == rows

    def test_answers_may_hold_keys_that_python_cannot_have(self, target: Target, tmp_path: Path) -> None:
        log = write_raw(tmp_path / "1.xlog", [b"\x92\x01\x81\x92\x01\x02\xa1a"])
        assert run("play", target.address, log) == (0, "", [])

    def test_a_snapshot(self, target: Target, tmp_path: Path) -> None:
        snapshot = write_snapshot(tmp_path, {272: [["x", 1]], 512: [[1, "a"], [2, "b"]]}, {1: 2})
        assert run("play", target.address, snapshot) == (0, "", [])
        assert target.values() == [[1, "a"], [2, "b"]]

    def test_several_files_in_the_order_they_are_given(self, target: Target, tmp_path: Path) -> None:
        second = write_log(tmp_path / "2.xlog", [[insertion(512, 1, "first")]])
        first = write_log(tmp_path / "1.xlog", [[replacement(512, 1, "second")]])
        assert run("play", target.address, second, first).status == 0
        assert target.values() == [[1, "second"]]

    def test_rows_that_change_nothing_are_passed_over(self, target: Target, tmp_path: Path) -> None:
        log = tmp_path / "1.xlog"
        with log.open("wb", buffering=0) as file:
            writer = XlogWriter.create(file, header())
            nop = Row(RowType.NOP, 1, replica_id=1, tsn=1)
            confirm = Row(RowType.CONFIRM, 2, body=codec.pack({2: 1, 3: 7}), replica_id=1, tsn=2)
            writer.write([encode_row(nop) + encode_row(confirm)])
            writer.end()
        more = write_rows(tmp_path / "2.xlog", 1)
        assert run("play", target.address, log, more) == (0, "", [])
        assert target.values() == [[1, "row 1"]]


def write_raw(path: Path, rows: list[bytes]) -> Path:
    """Write a log of INSERTs into space 512."""
    with path.open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, header())
        for lsn, raw in enumerate(rows, 1):
            row = Row(RowType.INSERT, lsn, body=insert_body(512, raw), replica_id=1, tsn=lsn)
            writer.write([encode_row(row)])
        writer.end()
    return path


class TestSelection:
    def test_system_spaces_only_if_asked_for(self, target: Target, tmp_path: Path) -> None:
        space = [600, 1, "played", "memtx", 0, {}, []]
        index = [600, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]]
        log = write_log(
            tmp_path / "1.xlog", [[insertion(280, *space)], [insertion(288, *index)], [insertion(600, 5)]]
        )
        outcome = run("play", target.address, log)
        assert outcome.status == 1
        assert outcome.errors[0].startswith(f"{log}: LSN 3: Space '600' does not exist")
        assert run("play", target.address, "--show-system", log) == (0, "", [])
        assert target.rows(600) == [b"\x91\x05"]

    def test_the_rest_as_for_cat(self, target: Target, tmp_path: Path) -> None:
        log = write_rows(tmp_path / "1.xlog", 6)
        moment = ["--timestamp", TIMESTAMP + 4]
        outcome = run(
            "play", target.address, log, "--from", 2, "--to", 6, *moment, "--space", 512, "--replica", 1
        )
        assert outcome.status == 0
        assert [row[0] for row in target.values()] == [2, 3, 4]

    def test_a_name_that_no_space_has(self, target: Target, tmp_path: Path) -> None:
        outcome = run("play", target.address, write_rows(tmp_path / "1.xlog", 1), "--space", "jobs")
        assert outcome == (1, "", ['no space is called "jobs" in these files: try its id'])

    def test_nothing_that_matches(self, target: Target, tmp_path: Path) -> None:
        nothing = "nothing was sent: no row of these files matches"
        log = write_rows(tmp_path / "1.xlog", 3)
        system = "; rows of system spaces need --show-system"
        assert run("play", target.address, log, "--from", 4) == (1, "", [nothing + system])
        outcome = run("play", target.address, log, "--space", 513, "--show-system")
        assert outcome == (1, "", [nothing])
        assert target.values() == []


class TestTheFirstErrorIsTheLast:
    def test_a_row_that_is_refused(self, target: Target, tmp_path: Path) -> None:
        log = write_log(
            tmp_path / "1.xlog", [[insertion(512, 1)], [insertion(512, 1)], [insertion(512, 2)]], first=7
        )
        outcome = run("play", target.address, log)
        duplicate = "Duplicate key exists in unique index 'pk' in space 't'"
        assert outcome == (1, "", [f"{log}: LSN 8: {duplicate}"])
        assert target.values() == [[1]]

    def test_damage(self, target: Target, tmp_path: Path) -> None:
        log = write_rows(tmp_path / "1.xlog", 3)
        log.write_bytes(log.read_bytes().replace(b"row 2", b"row X"))
        outcome = run("play", target.address, log)
        assert outcome.status == 1
        assert outcome.errors[0].startswith(f"{log}: wrong checksum of a block at offset ")
        assert target.values() == [[1, "row 1"]]

    def test_a_snapshot_that_is_not_complete(self, target: Target, tmp_path: Path) -> None:
        snapshot = write_snapshot(tmp_path, {512: [[1]]}, {1: 2})
        snapshot.write_bytes(snapshot.read_bytes()[:-4])
        outcome = run("play", target.address, snapshot)
        assert outcome.status == 1
        assert "the snapshot ends without end marker" in outcome.errors[0]

    def test_a_file_that_is_missing(self, target: Target, tmp_path: Path) -> None:
        log = write_rows(tmp_path / "1.xlog", 1)
        outcome = run("play", target.address, log, tmp_path / "2.xlog")
        assert outcome == (1, "", [f"cannot read {tmp_path / '2.xlog'}: No such file or directory"])

    def test_a_directory(self, target: Target, tmp_path: Path) -> None:
        assert run("play", target.address, tmp_path) == (1, "", [f"cannot read {tmp_path}: Is a directory"])

    def test_what_is_no_log(self, target: Target, tmp_path: Path) -> None:
        (tmp_path / "1.xlog").write_text("hello\n\n")
        assert run("play", target.address, tmp_path / "1.xlog").errors == [
            f"{tmp_path / '1.xlog'}: no header at offset 0"
        ]


@pytest.mark.process  # the client library runs ldconfig to find what it needs
class TestConnection:
    def test_a_user_with_a_password(self, target: Target, tmp_path: Path) -> None:
        log = write_rows(tmp_path / "1.xlog", 1)
        assert run("play", f"player:s:e@cret@{target.address}", log) == (0, "", [])
        assert target.values() == [[1, "row 1"]]

    @pytest.mark.parametrize("who", ["player:wrong", "player:", "player"])
    def test_a_wrong_password(self, target: Target, who: str, tmp_path: Path) -> None:
        outcome = run("play", f"{who}@{target.address}", write_rows(tmp_path / "1.xlog", 1))
        assert outcome.status == 1
        [error] = outcome.errors
        assert error.startswith(f"{target.address} refuses the login of user player: ")
        assert "Incorrect password supplied for user 'player'" in error or "User not found" in error
        assert "wrong" not in error.replace("wrong password", "")

    def test_a_unix_socket(self, start_server: StartServer, tmp_path: Path) -> None:
        (tmp_path / "target.py").write_text(APPLICATION)
        server = start_server(["target:app"], work_dir=tmp_path, listen="unix:box.sock")
        address = f"unix:{tmp_path}/box.sock"
        assert server.address == address
        assert run("play", address, write_rows(tmp_path / "1.log", 1)) == (0, "", [])
        assert Target(address).values() == [[1, "row 1"]]

    def test_nobody_there(self, tmp_path: Path) -> None:
        log = write_rows(tmp_path / "1.xlog", 1)
        with socket.create_server(("127.0.0.1", 0)) as closed:
            address = f"127.0.0.1:{closed.getsockname()[1]}"
        assert run("play", address, log).errors == [f"cannot connect to {address}: Connection refused"]
        path = tmp_path / "none.sock"
        outcome = run("play", f"unix:{path}", log)
        assert outcome == (1, "", [f"cannot connect to unix:{path}: No such file or directory"])

    def test_somebody_else_there(self, tmp_path: Path) -> None:
        log = write_rows(tmp_path / "1.xlog", 1)
        with other_server(b"HTTP/1.1 400 Bad Request\r\n" + b" " * 200) as address:
            outcome = run("play", address, log)
        assert outcome.status == 1
        [error] = outcome.errors
        assert error.startswith(
            f"cannot connect to {address}: the program that answers there is no Tarantool; is this"
        )

    def test_a_server_that_goes_away(self, tmp_path: Path) -> None:
        with other_server(b"") as address:
            outcome = run("play", address, write_rows(tmp_path / "1.xlog", 1))
        assert outcome.status == 1
        assert outcome.errors[0].startswith(f"cannot connect to {address}: ")


@contextmanager
def other_server(answer: bytes) -> Iterator[str]:
    """Something that is no Tarantool: it sends these bytes to the first who comes, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                client, _ = server.accept()
                client.sendall(answer)
                client.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            thread.join()


class TestCommandLine:
    @pytest.mark.parametrize(
        ("uri", "expected"),
        [
            ("db:3301", ServerUri(Address("db", 3301))),
            ("3301", ServerUri(Address(port=3301))),
            ("[::1]:3301", ServerUri(Address("::1", 3301))),
            ("unix:/run/box.sock", ServerUri(Address(path="/run/box.sock"))),
            ("alice@db:3301", ServerUri(Address("db", 3301), "alice")),
            ("alice:@db:3301", ServerUri(Address("db", 3301), "alice", "")),
            ("alice:a:b@c@db:3301", ServerUri(Address("db", 3301), "alice", "a:b@c")),
            ("alice:x@unix:/run/box.sock", ServerUri(Address(path="/run/box.sock"), "alice", "x")),
        ],
    )
    def test_uris(self, uri: str, expected: ServerUri) -> None:
        assert ServerUri.parse(uri) == expected

    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            ([], "Missing argument 'URI'"),
            (["db:3301"], "Missing argument 'FILE...'"),
            (["db", "x"], '"db" is not an address'),
            (["alice:secret@db", "x"], '"db" is not an address'),
            (["@db:3301", "x"], "there is no user before the @"),
            (["db:0", "x"], "the port is 0"),
            (["db:99999", "x"], "the port must be a number"),
            (["db:3301", "x", "--from", "first"], "'first' is not a valid integer"),
        ],
    )
    def test_mistakes_are_named(self, arguments: list[str], reason: str) -> None:
        outcome = run("play", *arguments)
        assert (outcome.status, outcome.output, len(outcome.errors)) == (2, "", 1)
        assert reason in outcome.errors[0]
        assert "secret" not in outcome.errors[0]

    def test_help_has_examples(self) -> None:
        outcome = run("play", "--help")
        assert outcome.status == 0
        assert "\nExamples:\n  iproto-server play " in outcome.output
