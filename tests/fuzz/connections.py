"""Connections to a server with a log: compiled code and pure Python send the same, and log the same rows."""

from __future__ import annotations

import logging
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import zstandard

from iproto_server import Application, Box
from iproto_server.storage.xlog import decode_rows
from iproto_server.storage.xlog.block import HEAD_SIZE, decode_head
from iproto_server.storage.xlog.header import XlogHeader
from tests.fuzz import answers
from tests.fuzz.draw import Draw
from tests.fuzz.service import GREETING, USER, Subject, framed
from tests.fuzz.target import Target
from tests.native import test_handle

_FRAMES_MOST: Final = 30


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

    def rows(self) -> list[object]:
        """Return the rows without their times."""
        found: list[object] = []
        while head := self._file.read(HEAD_SIZE):
            is_compressed, size, _ = decode_head(head)
            payload = self._file.read(size)
            if is_compressed:
                payload = zstandard.ZstdDecompressor().decompressobj().decompress(payload)
            for row in decode_rows(payload):
                about = (row.type, row.lsn, row.tsn, row.flags, row.replica_id)
                found.append((*about, row.space_id, row.tuple_raw, row.key_raw, row.operations_raw))
        return found


def application() -> Application:
    """Provide spaces of all kinds, and a user who may use them."""
    app = Application("spaces")

    @app.setup
    def setup(box: Box) -> None:
        box.schema.user.create(USER, password="secret")
        box.schema.user.grant(USER, "read,write,execute", "universe")
        answers.make_spaces(box)

    return app


@cache
def subject() -> tuple[Subject, Log]:
    """Start the server, which is reused for all inputs."""
    logging.getLogger("iproto_server").setLevel(logging.CRITICAL)
    made = Subject([test_handle.application(), application()], wal_mode="write")
    [path] = made.directory.glob("*.xlog")
    return made, Log(path)


def outcome(data: bytes) -> object:
    """Send requests in a few pieces.

    Returns:
        All that is sent back, the logged rows, and the rows in the end.
    """
    draw = Draw(data)
    places = [draw.byte() for _ in range(draw.byte() % 4)]
    frames: list[bytes] = []
    while not draw.is_used_up and len(frames) < _FRAMES_MOST:
        frames.append(answers.draw_frame(draw))
    stream = b"".join(map(framed, frames))
    cuts = [0, *sorted(len(stream) * place // 255 for place in places), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(cuts) if end > start]
    served, log = subject()
    sent, in_flight = served.loop.run_until_complete(served.serve(pieces))
    found = sent[GREETING:], in_flight, log.rows(), answers.rows_of(served.box)
    answers.empty(served.box)
    served.loop.run_until_complete(served.server.state.batch.drain())
    log.rows()
    return found


TARGET: Final = Target(
    outcome,
    [bytes((2, 80, 200)) + seed[1:] for seed in answers.TARGET.seeds],
    memory=16 << 20,
)
