"""What is said to the queues, byte by byte, and how their answers are counted however they are cut up."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.client.dialect import Dialect
from bench.client.iproto_frames import call_frame
from bench.client.requests import Requests
from bench.native.load import Framing, count_answers
from bench.peers.beanstalkd import BeanstalkdDialect
from bench.peers.iproto import IPROTO, row_requests
from bench.peers.redis import RedisDialect

BEANSTALKD = BeanstalkdDialect()
REDIS = RedisDialect()


def answer(body: object, code: int = 0) -> bytes:
    """An answer of IPROTO's, as a server writes it."""
    header = b"\x83\x00\xce" + code.to_bytes(4, "big") + b"\x01\xcf" + bytes(8) + b"\x05\xce" + bytes(4)
    content = header + bytes(msgpack.packb(body))
    return b"\xce" + len(content).to_bytes(4, "big") + content


TASK = answer({0x30: [{"id": 2**63 + 1, "status": "T", "data": "d" * 100}]})
NOTHING = answer({0x30: []})
ERROR = answer({0x31: "Task {7} was not found"}, code=0x8020)
ID = b"\xcf\x80\x00\x00\x00\x00\x00\x00\x01"

# For each dialect: an answer, how many tasks it has, and whether it says that something was done.
ANSWERS: list[tuple[Dialect, list[tuple[bytes, list[bytes], bool]]]] = [
    (IPROTO, [(TASK, [ID], True), (NOTHING, [], True), (ERROR, [], False), (answer({}), [], True)]),
    (
        BEANSTALKD,
        [
            (b"INSERTED 17\r\n", [], True),
            (b"RESERVED 17 16\r\n0123456789abcdef\r\n", [b"17"], False),
            (b"TIMED_OUT\r\n", [], False),
            (b"DELETED\r\n", [], True),
            (b"NOT_FOUND\r\n", [], False),
            (b"USING default\r\n", [], False),
        ],
    ),
    (
        REDIS,
        [
            (b":17\r\n", [], True),
            (b":0\r\n", [], False),
            (b"$16\r\n0123456789abcdef\r\n", [b"0123456789abcdef"], False),
            (b"$-1\r\n", [], False),
            (b"*-1\r\n", [], False),
            (b"+PONG\r\n", [], False),
            (b"-ERR unknown command\r\n", [], False),
        ],
    ),
]


def frames(requests: Requests) -> list[bytes]:
    """Each request by itself."""
    return [requests.span(number, number + 1) for number in range(len(requests))]


@pytest.mark.process  # the first count runs the compiler
@pytest.mark.parametrize(("dialect", "answers"), ANSWERS)
@given(data=st.data())
def test_answers_are_counted_however_they_are_cut(
    dialect: Dialect, answers: list[tuple[bytes, list[bytes], bool]], data: st.DataObject
) -> None:
    # Mostly the same answer many times, as a phase has it, and another here and there.
    runs = data.draw(st.lists(st.tuples(st.sampled_from(answers), st.integers(1, 5)), min_size=1, max_size=4))
    chosen = [one for one, times in runs for _ in range(times)]
    stream = b"".join(each for each, _, _ in chosen)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    count, rest, seen = 0, b"", b""
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        rest += stream[begin:end]
        found, length = count_answers(dialect.framing, rest)
        count += found
        seen += rest[:length]
        rest = rest[length:]
    assert count == len(chosen)
    assert (seen, rest) == (stream, b"")
    assert dialect.tasks_in(seen) == [task for _, tasks, _ in chosen for task in tasks]
    assert dialect.done_in(seen) == sum(is_done for _, _, is_done in chosen)


@pytest.mark.process  # the first count runs the compiler
@pytest.mark.parametrize("dialect", [IPROTO, BEANSTALKD, REDIS])
def test_no_bytes_are_no_answers(dialect: Dialect) -> None:
    assert count_answers(dialect.framing, b"") == (0, 0)


@pytest.mark.process  # the first count runs the compiler
@pytest.mark.parametrize(
    ("framing", "data"),
    [(Framing.IPROTO, b"\x93\0\0\0\0"), (Framing.BEANSTALKD, b"DELETED\n"), (Framing.REDIS, b"\n")],
)
def test_malformed_answers_are_refused(framing: Framing, data: bytes) -> None:
    with pytest.raises(ValueError, match="a malformed answer"):
        count_answers(framing, data)


@pytest.mark.parametrize("dialect", [IPROTO, BEANSTALKD, REDIS])
def test_nothing_to_do_is_no_request(dialect: Dialect) -> None:
    for requests in (dialect.pings(0), dialect.puts([]), dialect.takes(0), dialect.acks([])):
        assert (len(requests), requests.data) == (0, b"")


def test_iproto_calls_the_tutorials_queue() -> None:
    assert frames(IPROTO.puts([b"ab", b"cd"])) == [
        call_frame("queue.put", ["ab"]),
        call_frame("queue.put", ["cd"]),
    ]
    assert frames(IPROTO.puts([b"ab"], delay=3)) == [call_frame("queue.put", ["ab", {"delay": 3}])]
    assert frames(IPROTO.takes(2)) == [call_frame("queue.take", [])] * 2
    assert frames(IPROTO.takes(1, timeout=5)) == [call_frame("queue.take", [5])]
    assert frames(IPROTO.acks([ID])) == [call_frame("queue.ack", [2**63 + 1])]
    frame = call_frame("queue.take", [])
    assert int.from_bytes(frame[1:5], "big") == len(frame) - 5
    unpacker = msgpack.Unpacker(strict_map_key=False)
    unpacker.feed(frame[5:])
    assert list(unpacker) == [{0x00: 10, 0x01: 0}, {0x22: "queue.take", 0x21: []}]


@pytest.mark.parametrize(
    ("operation", "kind", "body"),
    [
        ("insert", 2, {0x10: 600, 0x21: [7, "a"]}),
        ("replace", 3, {0x10: 600, 0x21: [7, "a"]}),
        ("update", 4, {0x10: 600, 0x11: 0, 0x20: [7], 0x21: [["=", 1, "a"]]}),
        ("delete", 5, {0x10: 600, 0x11: 0, 0x20: [7]}),
        ("select", 1, {0x10: 600, 0x11: 0, 0x12: 1, 0x13: 0, 0x14: 0, 0x20: [7]}),
    ],
)
def test_rows_are_asked_for_by_key(operation: str, kind: int, body: dict[int, object]) -> None:
    [frame] = frames(row_requests(operation, 600, [7], [b"a"]))
    unpacker = msgpack.Unpacker(strict_map_key=False)
    unpacker.feed(frame[5:])
    assert list(unpacker) == [{0x00: kind, 0x01: 0}, body]


def test_beanstalkd_is_spoken_to_in_lines() -> None:
    assert BEANSTALKD.puts([b"ab", b"cd"]).data == b"put 0 0 3600 2\r\nab\r\nput 0 0 3600 2\r\ncd\r\n"
    assert BEANSTALKD.puts([b"ab"], delay=3).data == b"put 0 3 3600 2\r\nab\r\n"
    assert frames(BEANSTALKD.takes(2)) == [b"reserve-with-timeout 0\r\n"] * 2
    assert BEANSTALKD.takes(1, timeout=5).data == b"reserve-with-timeout 5\r\n"
    assert frames(BEANSTALKD.acks([b"9", b"10"])) == [b"delete 9\r\n", b"delete 10\r\n"]


def test_redis_is_spoken_to_in_arrays_of_strings() -> None:
    assert REDIS.puts([b"ab"]).data == b"*3\r\n$5\r\nLPUSH\r\n$5\r\nready\r\n$2\r\nab\r\n"
    take = b"\r\n$5\r\nready\r\n$5\r\ntaken\r\n$5\r\nRIGHT\r\n$4\r\nLEFT\r\n"
    assert REDIS.takes(1).data == b"*5\r\n$5\r\nLMOVE" + take
    assert REDIS.takes(1, timeout=5).data == b"*6\r\n$6\r\nBLMOVE" + take + b"$1\r\n5\r\n"
    assert REDIS.acks([b"ab"]).data == b"*4\r\n$4\r\nLREM\r\n$5\r\ntaken\r\n$2\r\n-1\r\n$2\r\nab\r\n"


def test_lists_have_no_delays() -> None:
    with pytest.raises(ValueError, match="lists have no delays"):
        REDIS.puts([b"ab"], delay=1)


def test_requests_are_cut_where_they_end() -> None:
    requests = Requests.of([b"a", b"bcd", b"ef"])
    assert len(requests) == 3
    assert [requests.span(0, 1), requests.span(1, 3), requests.span(2, 9), requests.span(3, 4)] == [
        b"a",
        b"bcdef",
        b"ef",
        b"",
    ]
