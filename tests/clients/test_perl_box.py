"""A client of Tarantool 1.5, Perl's MR::Tarantool::Box: spaces, calls, errors, the legacy queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.clients.drivers.driver import ClientError, Target
from tests.clients.drivers.perl_box import MODULE, PACKAGE, PerlBox
from tests.iproto_client import IprotoClient
from tests.programs import require_perl_module
from tests.running_server import RunningServer
from tests.server.tarantool15.application15 import PAIRS, PLAIN, TYPED

pytestmark = pytest.mark.perl

Connect = Callable[[], PerlBox]
APPLICATIONS = ["tests.server.tarantool15.application15:app", "queue_lua_compat.legacy:app"]
SPACE = "700"
"""The number of the queue's space."""

TASK = "&*"
META = "&&&Q&&LQQQQQQ"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    require_perl_module(MODULE, PACKAGE)
    directory = tmp_path_factory.mktemp("perl")
    with RunningServer(directory, APPLICATIONS, ["--listen-1-5", "127.0.0.1:0"]) as server:
        yield server


@pytest.fixture
def connect(server: RunningServer) -> Iterator[Connect]:
    port = int(server.process.wait_for(r"listening on 127.0.0.1:(\d+), protocol of Tarantool 1.5")[1])
    with ExitStack() as connections:

        def connect() -> PerlBox:
            client = PerlBox(Target("iproto-server", "127.0.0.1", port))
            connections.callback(client.close)
            return client

        yield connect


@pytest.fixture
def perl(connect: Connect) -> PerlBox:
    return connect()


@pytest.fixture(autouse=True)
def _empty(server: RunningServer) -> None:
    with IprotoClient.at(server.address) as client:
        for name in ("typed", "plain", "pairs"):
            assert client.call(f"box.space.{name}:truncate").ok


class TestSpaces:
    ROW = (1, "one", 10, 2**40)

    @pytest.fixture
    def typed(self, perl: PerlBox) -> PerlBox:
        perl.use(TYPED, "L&LQ", [0], [1, 2], [3])
        return perl

    def test_ping(self, perl: PerlBox) -> None:
        assert perl.answer_to_ping() == "answer of "

    def test_insert_and_select(self, typed: PerlBox) -> None:
        assert typed.store("set", self.ROW) == 1
        assert typed.read([1]) == [list(self.ROW)]

    def test_add_and_replace(self, typed: PerlBox) -> None:
        with pytest.raises(ClientError, match="Error 00003102: Tuple doesn't exist"):
            typed.store("replace", self.ROW)
        assert typed.store("add", self.ROW, wanted=True) == list(self.ROW)
        with pytest.raises(ClientError, match="Error 00003702: Duplicate key exists") as refused:
            typed.store("add", self.ROW)
        assert refused.value.code == 0x3702
        assert typed.store("replace", (1, "two", 20, 5), wanted=True) == [1, "two", 20, 5]

    def test_select_by_every_index(self, typed: PerlBox) -> None:
        rows = [[number, "ab"[number % 2], number, number * 10] for number in range(4)]
        for row in rows:
            typed.store("set", row)
        assert typed.read([3, 9, 0]) == [rows[3], rows[0]]
        assert typed.read([["b"]], "index1") == [rows[1], rows[3]]
        assert typed.read([["b", 3], ["a"]], "index1") == [rows[3], rows[0], rows[2]]
        assert typed.read([["b", 3], ["a"]], "index1", limit=1, offset=1) == [rows[0]]
        assert typed.read([20], "index2") == [rows[2]]

    def test_update(self, typed: PerlBox) -> None:
        typed.store("set", self.ROW)
        assert typed.change(1, [2, "add", 5], [2, "xor", 1], [2, "or", 64], [2, "and", 0x4E]) == 1
        assert typed.change(1, [3, "add", -1], [3, "set", 7], [3, "num_sub", 2], wanted=True) == [
            1,
            "one",
            78,
            5,
        ]
        assert typed.change(9, [2, "add", 5]) == "0E0", "Perl's way to say that none was there"

    def test_update_of_texts(self, typed: PerlBox) -> None:
        typed.store("set", self.ROW)
        texts: list[tuple[list[object], str]] = [
            (["append", "!"], "one!"),
            (["prepend", "<"], "<one!"),
            (["cutbeg", 1], "one!"),
            (["cutend", 1], "one"),
            (["substr", [1, 1, "NN"]], "oNNe"),
            (["substr", [-1, 1]], "oNN"),
            (["splice", [None, 0, "end"]], "oNNend"),
            (["set", "\xff\x00"], "\xff\x00"),
        ]
        for operation, text in texts:
            assert typed.change(1, [1, *operation], wanted=True)[1] == text

    def test_delete(self, typed: PerlBox) -> None:
        typed.store("set", self.ROW)
        assert typed.remove(1, wanted=True) == list(self.ROW)
        assert typed.remove(1) == "0E0"
        typed.store("set", self.ROW)
        assert typed.remove(1) == 1

    def test_bytes_come_back_as_they_were(self, perl: PerlBox) -> None:
        perl.use(PLAIN, "&LQSC&*", [0])
        every_byte = "".join(map(chr, range(256)))
        row = ["key", 2**32 - 1, 2**64 - 1, 65535, 255, every_byte, every_byte * 9, ""]
        perl.store("set", row)
        [found] = perl.read(["key"])
        found[2] = int(found[2])
        assert found == row

    def test_numbers_in_fields_without_a_type_are_calculated_with(self, perl: PerlBox) -> None:
        perl.use(PLAIN, "&LQ", [0])
        perl.store("set", ["key", 1, 1])
        assert perl.change("key", [1, "add", 9], [2, "add", -1], wanted=True) == ["key", 10, 0]

    def test_keys_of_several_fields(self, perl: PerlBox) -> None:
        perl.use(PAIRS, "&L&", [0, 1])
        perl.store("set", ["a", 1, "x"])
        assert perl.read([["a", 1]]) == [["a", 1, "x"]]
        with pytest.raises(ClientError, match="Error 00002D02: HASH index"):
            perl.read([["a"]])

    def test_a_space_and_an_index_there_are_not(self, perl: PerlBox) -> None:
        perl.use(9999, "&", [0], [0])
        with pytest.raises(ClientError, match="Error 00003902: Space '9999' does not exist"):
            perl.read(["x"])
        perl.use(PLAIN, "&", [0], [0])
        with pytest.raises(ClientError, match="Error 00003502: No index #1 is defined in space 'plain'"):
            perl.read(["x"], "index1")

    def test_a_number_of_the_wrong_size(self, perl: PerlBox) -> None:
        perl.use(TYPED, "L&QQ", [0])
        with pytest.raises(ClientError, match=r"Error 00002602: .* expected NUM'"):
            perl.store("set", self.ROW)


class TestCalls:
    def test_results(self, perl: PerlBox) -> None:
        assert perl.ask("echo", "a", "", "\xff") == [["a", "", "\xff"]]
        assert perl.ask("result", "several", format="&*")[2] == ["four"]
        assert perl.ask("result", "number", format="L") == [[7]]
        assert perl.ask("result", "number64", format="Q") == [[7]]
        assert perl.ask("result", "nil") == [["nil"]]
        assert perl.ask("result", "nothing") == []

    @pytest.mark.parametrize(
        ("procedure", "arguments", "code", "message"),
        [
            ("nope", [], 0x3202, "Procedure 'nope' is not defined"),
            ("fail", [""], 0x3302, "Lua error: on purpose"),
            ("fail", ["own"], 30000 << 8 | 2, "my own"),
            ("result", ["nested"], 0x3002, "Return type 'table' is not supported in the binary protocol"),
        ],
    )
    def test_errors(
        self, perl: PerlBox, procedure: str, arguments: list[str], code: int, message: str
    ) -> None:
        with pytest.raises(ClientError) as refused:
            perl.ask(procedure, *arguments)
        assert (refused.value.code, refused.value.message) == (code, f"Error {code:08X}: {message}")

    def test_a_connection_lives_on(self, perl: PerlBox) -> None:
        perl.ask("remember", "me")
        with pytest.raises(ClientError):
            perl.ask("nope")
        assert perl.ask("remember", "") == [["me"]]


class TestOlderQueue:
    """Its whole API; all arguments are strings, as this client sends them."""

    @pytest.fixture(autouse=True)
    def _no_tasks(self, perl: PerlBox) -> None:
        perl.ask("queue.truncate", SPACE, "tube", format="L")

    @staticmethod
    def put(perl: PerlBox, *data: str, pri: int = 0, delay: float = 0, name: str = "put") -> str:
        """Put a task, and return its id."""
        [[task_id, tube, status, *fields]] = perl.ask(
            f"queue.{name}", SPACE, "tube", delay, 60, 30, pri, *data
        )
        assert (tube, status, fields) == ("tube", "delayed" if delay else "ready", [*data])
        assert len(task_id) == 32
        assert int(task_id, 16) >= 0
        return str(task_id)

    @staticmethod
    def status(perl: PerlBox, task_id: str) -> str:
        [[_, _, status, *_]] = perl.ask("queue.peek", SPACE, task_id)
        return str(status)

    def test_put_take_and_ack(self, perl: PerlBox) -> None:
        task_id = self.put(perl, "data", "more", "\xff")
        taken = [[task_id, "tube", "taken", "data", "more", "\xff"]]
        assert perl.ask("queue.take", SPACE, "tube", 0) == taken
        assert perl.ask("queue.ack", SPACE, task_id)[0][0] == task_id
        with pytest.raises(ClientError, match="Error 00003302: Lua error: Task not found"):
            perl.ask("queue.peek", SPACE, task_id)

    def test_a_task_without_data(self, perl: PerlBox) -> None:
        task_id = self.put(perl)
        assert perl.ask("queue.take", SPACE, "tube", 0) == [[task_id, "tube", "taken"]]

    def test_the_most_urgent_comes_first(self, perl: PerlBox) -> None:
        low, high = self.put(perl, "low", pri=-5), self.put(perl, "high", pri=5)
        urgent = self.put(perl, "urgent", pri=-100, name="urgent")
        taken = [perl.ask("queue.take", SPACE, "tube", 0)[0][0] for _ in range(3)]
        assert taken == [urgent, high, low]

    def test_the_same_data_is_put_once(self, perl: PerlBox) -> None:
        task_id = self.put(perl, "once", name="put_unique")
        assert self.put(perl, "once", name="put_unique") == task_id
        assert self.put(perl, "twice", name="put_unique") != task_id

    def test_nothing_to_take(self, perl: PerlBox) -> None:
        self.put(perl, "later", delay=100)
        assert perl.ask("queue.take", SPACE, "tube", 0) == []
        assert perl.ask("queue.take", SPACE, "tube", 0.01) == []

    def test_who_waits_gets_what_comes(self, perl: PerlBox, connect: Connect) -> None:
        consumer = connect()
        with ThreadPoolExecutor(1) as waiting:
            taken = waiting.submit(consumer.ask, "queue.take", SPACE, "tube", 20)
            task_id = self.put(perl, "data")
            assert taken.result() == [[task_id, "tube", "taken", "data"]]

    def test_what_a_consumer_that_leaves_had_is_ready_again(self, perl: PerlBox, connect: Connect) -> None:
        task_id = self.put(perl, "data")
        leaving = connect()
        assert leaving.ask("queue.take", SPACE, "tube", 0)[0][0] == task_id
        leaving.kill()
        assert perl.ask("queue.take", SPACE, "tube", 20)[0][0] == task_id

    def test_a_task_is_its_consumer_s(self, perl: PerlBox, connect: Connect) -> None:
        task_id = self.put(perl, "data")
        perl.ask("queue.take", SPACE, "tube", 0)
        other = connect()
        for name in ("ack", "release", "requeue", "bury", "done", "touch"):
            with pytest.raises(ClientError, match="Error 00003302: Lua error: "):
                other.ask(f"queue.{name}", SPACE, task_id)
        assert self.status(perl, task_id) == "taken"

    def test_release_and_requeue(self, perl: PerlBox) -> None:
        first, second = self.put(perl, "first"), self.put(perl, "second")
        perl.ask("queue.take", SPACE, "tube", 0)
        assert perl.ask("queue.release", SPACE, first) == [[first, "tube", "ready", "first"]]
        assert perl.ask("queue.take", SPACE, "tube", 0)[0][0] == first
        assert perl.ask("queue.requeue", SPACE, first) == [[first, "tube", "ready", "first"]]
        assert perl.ask("queue.take", SPACE, "tube", 0)[0][0] == second
        assert perl.ask("queue.release", SPACE, second, 100, 10)[0][2] == "delayed"

    def test_bury_dig_unbury_and_kick(self, perl: PerlBox) -> None:
        task_id = self.put(perl, "data")
        for dig_up in ("queue.dig", "queue.unbury"):
            perl.ask("queue.take", SPACE, "tube", 0)
            assert perl.ask("queue.bury", SPACE, task_id)[0][2] == "buried"
            assert perl.ask(dig_up, SPACE, task_id)[0][2] == "ready"
        perl.ask("queue.take", SPACE, "tube", 0)
        perl.ask("queue.bury", SPACE, task_id)
        assert perl.ask("queue.kick", SPACE, "tube", 5, format="L") == [[1]]
        assert self.status(perl, task_id) == "ready"

    def test_done_keeps_the_task_with_other_data(self, perl: PerlBox) -> None:
        task_id = self.put(perl, "data")
        perl.ask("queue.take", SPACE, "tube", 0)
        assert perl.ask("queue.done", SPACE, task_id, "result", "2") == [
            [task_id, "tube", "done", "result", "2"]
        ]
        assert perl.ask("queue.peek", SPACE, task_id)[0][2:] == ["done", "result", "2"]

    def test_touch(self, perl: PerlBox) -> None:
        task_id = self.put(perl, "data")
        perl.ask("queue.take", SPACE, "tube", 0)
        assert perl.ask("queue.touch", SPACE, task_id)[0][:3] == [task_id, "tube", "taken"]

    def test_delete_and_truncate(self, perl: PerlBox) -> None:
        task_id = self.put(perl, "data")
        assert perl.ask("queue.delete", SPACE, task_id)[0][0] == task_id
        self.put(perl, "one")
        self.put(perl, "two")
        assert perl.ask("queue.truncate", SPACE, "tube", format="L") == [[2]]

    def test_meta_has_numbers_of_the_sizes_that_clients_count_on(self, perl: PerlBox) -> None:
        task_id = self.put(perl, "data", pri=3)
        perl.ask("queue.take", SPACE, "tube", 0)
        [meta] = perl.ask("queue.meta", SPACE, task_id, format=META)
        found_id, tube, status, event, ipri, pri, cid, created, ttl, ttr, buried, taken, now = meta
        assert (found_id, tube, status, ipri, pri) == (task_id, "tube", "taken", "127", "130")
        assert (int(ttl), int(ttr), int(buried), int(taken)) == (60, 30, 0, 1)
        assert cid > 0
        assert int(created) <= int(now) < int(event) <= int(now) + 30_000_000

    def test_statistics_are_names_and_values(self, perl: PerlBox) -> None:
        self.put(perl, "data")
        for name in ("queue.statistics", "queue.statistic"):
            [row] = perl.ask(name, SPACE, "tube")
            counters = dict(zip(row[::2], row[1::2], strict=True))
            assert counters["space700.tube.tasks.ready"] == "1"
            assert int(counters["space700.tube.put"]) >= 1

    def test_many_at_a_time(self, perl: PerlBox) -> None:
        ids = [self.put(perl, str(number)) for number in range(5)]
        taken = perl.ask("queue.take_many", SPACE, "tube", 3, 0)
        assert [task[0] for task in taken] == ids[:3]
        assert len(perl.ask("queue.ack_many", SPACE, *ids[:3])) == 3

    def test_the_space_of_tasks_can_be_read(self, perl: PerlBox) -> None:
        task_id = self.put(perl, "data")
        perl.use(int(SPACE), "&&&QLLLQQQQQ&*", [0], [1, 2])
        [row] = perl.read([task_id])
        assert row[:3] == [task_id, "tube", "r"]
        assert (int(row[8]), int(row[9]), row[12]) == (60_000_000, 30_000_000, "data")
        assert perl.read([["tube", "r"]], "index1") == [row]
