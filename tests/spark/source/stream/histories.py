"""Random histories of a server and of a stream that begins with its snapshot.

    python -m tests.spark.source.stream.histories --histories 20 --seed 1 --subject ours

In a history, rows are changed, logs are rotated, checkpoints remove old files, the server is killed and
started again, and so is the query, also between planning and reading a batch. The rows rebuilt from the
stream must be those that the server had at each LSN at which it was asked, and each change must be there
once.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack

from iproto_server.box.update import apply_update, apply_upsert, parse_update
from tests.iproto_client import (
    BEGIN,
    COMMIT,
    DELETE,
    INDEX_ID,
    KEY,
    OPERATIONS,
    REPLACE,
    SPACE_ID,
    STREAM_ID,
    TUPLE,
    UPDATE,
    UPSERT,
    IprotoClient,
)
from tests.real_tarantool import GUEST_IS_SUPER, RealTarantool
from tests.running_server import RunningServer
from tests.spark.sink.application import LUA
from tests.spark.source.change_follower import ChangeFollower

_APPLICATION = "tests.spark.sink.application:app"
_SPACE = "calls"
_KEYS = 60
_STEPS = 40

Rows = dict[int, list[Any]]


class History:
    """A server, a stream of its changes, and the rows that both should have.

    Parameters:
        directory: For the files of both.
        seed: Of the random choices.
        subject: `ours`, or `tarantool` for a real one.

    Attributes:
        counts: The number of each kind of event.
    """

    def __init__(self, directory: Path, seed: int, subject: str = "ours") -> None:
        self._random = random.Random(seed)
        self._subject = subject
        self._data, self._held = directory / "data", directory / "held"
        self._data.mkdir()
        self._server = self._start()
        self._client = IprotoClient(self._server.host, self._server.port)
        self._space_id = self._client.space_id(_SPACE)
        self._query: ChangeFollower | None = None
        self._seen: dict[int, Rows] = {}
        self.counts: dict[str, int] = {}

    def run(self) -> None:
        """Let things happen, then compare.

        Raises:
            AssertionError: If the stream is not what the server had.
        """
        try:
            self._write(200)
            self._checkpoint()
            for _ in range(_STEPS):
                event = self._random.choice(self._events())
                self.counts[event.__name__] = self.counts.get(event.__name__, 0) + 1
                event()
            self._write(5)
            self._read_all()
            self._compare()
        finally:
            if self._query is not None:
                self._query.reader.stop()
            self._client.close()
            self._server.stop()

    def _events(self) -> list[Callable[[], None]]:
        events = [self._write_some, self._write_some, self._checkpoint, self._kill_server]
        events += [self._plan, self._finish, self._finish, self._kill_query, self._fail_to_read]
        return events

    # -- the server --

    def _start(self) -> RunningServer | RealTarantool:
        if self._subject == "tarantool":
            settings = {"wal_mode": "'write'", "wal_max_size": "6000", "checkpoint_count": "1"}
            return RealTarantool(self._data, GUEST_IS_SUPER + LUA, settings)
        options = ["--checkpoint-count", "1", "--wal-max-size", "6000", "--wal-mode", "write"]
        return RunningServer(self._data, [_APPLICATION], options)

    def _write_some(self) -> None:
        self._write(self._random.choice([1, 5, 60]))

    def _write(self, count: int) -> None:
        """Change rows, some of them in transactions, and remember what the server has then."""
        for number in range(count):
            if self._subject == "ours" and self._random.random() < 0.1:
                header = {STREAM_ID: 1}
                assert self._client.request(BEGIN, {}, header).ok
                for _ in range(self._random.choice([2, 3, 200])):
                    self._change(header)
                assert self._client.request(COMMIT, {}, header).ok
            else:
                self._change({})
            if number % 20 == 0:
                self._remember()
        self._remember()

    def _change(self, header: dict[int, int]) -> None:
        key, value = self._random.randrange(_KEYS), self._random.randrange(10**6)
        body: dict[int, Any] = {SPACE_ID: self._space_id, INDEX_ID: 0}
        kind = self._random.choice([REPLACE, UPDATE, UPSERT, DELETE])
        if kind == REPLACE:
            body[TUPLE] = [key, "x" * self._random.choice([1, 300]), value]
        elif kind == UPSERT:
            body |= {TUPLE: [key, "new", value], OPERATIONS: [["+", 2, 1]]}
        else:
            body[KEY] = [key]
            if kind == UPDATE:
                body[TUPLE] = [["=", 2, value], ["=", 1, "changed"]]
        answer = self._client.request(kind, body, header)
        assert answer.ok, answer.error

    def _remember(self) -> None:
        lsn = self._client.call("box.info").data[0]["lsn"]
        self._seen[lsn] = {row[0]: row for row in self._client.everything(self._space_id).data}

    def _checkpoint(self) -> None:
        """Take a checkpoint, which removes all files before it, once the query has linked its logs."""
        if self._query is not None:
            self._query.look_for_logs()
        assert self._client.call("box.snapshot").ok

    def _kill_server(self) -> None:
        self._client.close()
        self._server.process.kill()
        self._server = self._start()
        self._client = IprotoClient(self._server.host, self._server.port)

    # -- the query --

    def _plan(self) -> None:
        if self._query is None:
            self._query = ChangeFollower(
                self._data,
                space=_SPACE,
                starting="snapshot",
                raw="true",
                max_bytes_per_trigger=self._random.choice(["500", "5k", "1g"]),
                partition_bytes="64k",
                hold_path=str(self._held),
            )
        self._query.plan()

    def _finish(self) -> None:
        if self._query is not None and self._query.plan():
            self._query.finish()

    def _kill_query(self) -> None:
        if self._query is not None:
            self._query.restart()

    def _fail_to_read(self) -> None:
        """A batch is read, but its result is lost."""
        if self._query is not None and self._query.plan():
            self._query.read(self._query.parts())
            self._query.restart()

    def _read_all(self) -> None:
        self._plan()
        assert self._query is not None
        self._query.follow()

    # -- the result --

    def _compare(self) -> None:
        assert self._query is not None
        rows = self._query.rows
        snapshot = [row for row in rows if row["replica_id"] == 0]
        changes = [row for row in rows if row["replica_id"] != 0]
        assert rows == snapshot + changes, "the rows of the snapshot do not come first"
        lsns = [row["lsn"] for row in changes]
        assert lsns == sorted(set(lsns)), "a change is missing its place, or is there twice"
        state: Rows = {}
        position = 0
        first = snapshot[0]["lsn"] if snapshot else 0
        assert {row["lsn"] for row in snapshot} <= {first}
        compared = 0
        for lsn in sorted(self._seen):
            if lsn < first:
                continue
            while position < len(rows) and rows[position]["lsn"] <= lsn:
                _apply(state, rows[position])
                position += 1
            assert state == self._seen[lsn], f"at LSN {lsn}, the rows are not those that the server had"
            compared += 1
        assert position == len(rows)
        assert compared
        self.counts["compared"] = compared
        self.counts["changes"] = len(changes)


def _apply(state: Rows, row: dict[str, Any]) -> None:
    """Make a change: our logs have whole rows, those of Tarantool also operations."""
    kind = row["operation"]
    if kind == "DELETE":
        state.pop(msgpack.unpackb(row["key_raw"])[0], None)
        return
    new = row["tuple_raw"]
    if kind in ("UPDATE", "UPSERT"):
        key = msgpack.unpackb(row["key_raw"] if kind == "UPDATE" else new)[0]
        old = state.get(key)
        operations = parse_update(row["operations_raw"], {})
        if old is not None:
            apply = apply_update if kind == "UPDATE" else apply_upsert
            new = apply(operations, msgpack.packb(old))
        elif kind == "UPDATE":
            return
    tuple_ = msgpack.unpackb(new)
    state[tuple_[0]] = tuple_


def main() -> None:
    """Run histories, and print what happened in each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--subject", choices=["ours", "tarantool"], default="ours")
    arguments = parser.parse_args()
    for seed in range(arguments.seed, arguments.seed + arguments.histories):
        with tempfile.TemporaryDirectory() as directory:
            history = History(Path(directory), seed, arguments.subject)
            history.run()
            print(seed, json.dumps(history.counts), flush=True)


if __name__ == "__main__":
    main()
