"""Connections to a server with a log: how requests are cut changes nothing, and the log has all rows."""

from __future__ import annotations

import logging
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import zstandard

from iproto_server import Application, Box
from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import RowType, decode_rows
from iproto_server.storage.xlog.block import HEAD_SIZE, decode_head
from iproto_server.storage.xlog.header import XlogHeader
from tests.fuzz.draw import Draw
from tests.fuzz.spaces import answers
from tests.fuzz.spaces.spaces import NAMES, NOT_LOGGED, draw_frame, empty, make_spaces, rows_of
from tests.fuzz.target import Target
from tests.fuzz.wire.service import GREETING, USER, Subject, framed
from tests.native.requests import sides

_FRAMES_MOST: Final = 30


class Logged(NamedTuple):
    """What the log has of a row, except the time."""

    type: int
    lsn: int
    tsn: int
    flags: int
    space_id: int
    tuple: bytes | None
    key: bytes | None


class Log:
    """The rows that a server has logged since the last call.

    Parameters:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        start = self._file.read()
        _, header_size = XlogHeader.decode(start, str(path))
        self._file.seek(header_size)
        self.rows()

    def rows(self) -> list[Logged]:
        """Return the rows."""
        found: list[Logged] = []
        while head := self._file.read(HEAD_SIZE):
            is_compressed, size, _ = decode_head(head)
            payload = self._file.read(size)
            if is_compressed:
                payload = zstandard.ZstdDecompressor().decompressobj().decompress(payload)
            for row in decode_rows(payload):
                assert row.operations_raw is None
                assert row.space_id is not None
                found.append(
                    Logged(row.type, row.lsn, row.tsn, row.flags, row.space_id, row.tuple_raw, row.key_raw)
                )
        return found


def application() -> Application:
    """Provide spaces of all kinds, and a user who may use them."""
    app = Application("spaces")

    @app.setup
    def setup(box: Box) -> None:
        box.schema.user.create(USER, password="secret")
        box.schema.user.grant(USER, "read,write,execute", "universe")
        make_spaces(box)

    return app


@cache
def subject() -> tuple[Subject, Log]:
    """Start the server, which is reused for all inputs."""
    logging.getLogger("iproto_server").setLevel(logging.CRITICAL)
    made = Subject([sides.application(), application()], wal_mode="write")
    [path] = made.directory.glob("*.xlog")
    return made, Log(path)


def serve(pieces: list[bytes]) -> tuple[bytes, int, list[Logged], list[object]]:
    """Send pieces of a stream to a server without rows.

    Returns:
        All that is sent back, the requests in flight, the logged rows, and the rows in the end.
    """
    served, log = subject()
    sent, in_flight = served.loop.run_until_complete(served.serve(pieces))
    logged, rows = log.rows(), rows_of(served.box)
    check_log(served.box, logged)
    empty(served.box)
    served.loop.run_until_complete(served.server.state.batch.drain())
    log.rows()
    first = logged[0].lsn if logged else 0
    return (
        sent[GREETING:],
        in_flight,
        [row._replace(lsn=row.lsn - first, tsn=row.tsn - first) for row in logged],
        rows,
    )


def check_log(box: Box, logged: list[Logged]) -> None:
    """Check that the logged rows, one after the other, make the rows that the box has."""
    made: dict[int, dict[bytes, bytes]] = {}
    for row in logged:
        primary = box.catalog.space(row.space_id).primary
        assert primary is not None
        rows = made.setdefault(row.space_id, {})
        if row.tuple is None:
            assert row.type == RowType.DELETE
            assert row.key is not None
            del rows[primary.encode_key(codec.unpack(row.key))]
        else:
            key = primary.key_of(codec.unpack(row.tuple), b"")
            assert row.type == (RowType.REPLACE if key in rows else RowType.INSERT)
            rows[key] = row.tuple
    for name in NAMES:
        if name not in NOT_LOGGED:
            primary = box.space[name].core().primary
            assert primary is not None
            assert dict(primary.items()) == made.get(box.space[name].id, {}), name


def check(data: bytes) -> None:
    """Send requests in a few pieces, and then at once."""
    draw = Draw(data)
    places = [draw.byte() for _ in range(draw.byte() % 4)]
    frames: list[bytes] = []
    while not draw.is_used_up and len(frames) < _FRAMES_MOST:
        frames.append(draw_frame(draw))
    stream = b"".join(map(framed, frames))
    cuts = [0, *sorted(len(stream) * place // 255 for place in places), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(cuts) if end > start]
    assert serve(pieces) == serve([stream])


TARGET: Final = Target(
    check,
    [bytes((2, 80, 200)) + seed[1:] for seed in answers.TARGET.seeds],
    memory=16 << 20,
)
