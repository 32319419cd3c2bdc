"""A connection that pipelines requests and records the outcome of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import msgpack

from tests.iproto_client import CALL, DATA, ERROR_24, FUNCTION_NAME, REQUEST_TYPE, SYNC, TUPLE, frame


class Reply(NamedTuple):
    """A server's answer.

    Parameters:
        error_code: 0 for a success.
        data: The rows or values of a success; the text of an error.
    """

    error_code: int
    data: Any


Answered = Callable[[Reply | None], None]
"""Called with the answer, or with None if the connection broke before it came."""


class Pipeline:
    """One connection. An answer that the system has received counts, even if the server is dead by then.

    Parameters:
        reader, writer: The connection, whose greeting was read.
        instance: The server's UUID in the greeting, which tells it from others that get its port later.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, instance: bytes) -> None:
        self.instance = instance
        self._reader = reader
        self._writer = writer
        self._sync = 0
        self._waiting: dict[int, Answered] = {}
        self._is_read = True
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, host: str, port: int) -> Self:
        """Connect.

        Raises:
            OSError: There is no server.
            asyncio.IncompleteReadError: The server went away before it greeted.
        """
        reader, writer = await asyncio.open_connection(host, port)
        greeting = await reader.readexactly(128)
        return cls(reader, writer, greeting.split(maxsplit=4)[3])

    @property
    def is_broken(self) -> bool:
        """Whether the connection can no longer send."""
        return not self._is_read or self._writer.transport.is_closing()

    def send(
        self, request_type: int, body: Mapping[int, Any], answered: Answered, *, stream_id: int = 0
    ) -> None:
        """Send a request.

        Parameters:
            request_type: Its type.
            body: Its body.
            answered: Called once, later, or at once if the connection has ended.
            stream_id: Its stream; 0 for none.
        """
        if not self._is_read:
            answered(None)
            return
        self._sync += 1
        self._waiting[self._sync] = answered
        if not self._writer.transport.is_closing():
            self._writer.write(frame(request_type, body, sync=self._sync, stream_id=stream_id))

    def call(self, procedure: str, *arguments: Any) -> asyncio.Future[Reply | None]:
        """CALL a procedure; the future's result is the argument of `answered` in `send`."""
        future: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
        self.send(CALL, {FUNCTION_NAME: procedure, TUPLE: list(arguments)}, future.set_result)
        return future

    async def ended(self) -> None:
        """Wait until the connection has ended and every outcome is known."""
        await self._reading

    async def close(self) -> None:
        """Close the connection; requests in flight get no answer."""
        self._writer.close()
        await self._reading

    def cut(self) -> None:
        """Abort the connection: sent requests may arrive, but answers are not read."""
        self._writer.transport.abort()

    async def _read(self) -> None:
        try:
            while True:
                size = int.from_bytes((await self._reader.readexactly(5))[1:], "big")
                self._answer(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the expected end
        finally:
            self._is_read = False
            self._writer.transport.abort()
            for answered in self._waiting.values():
                answered(None)
            self._waiting.clear()

    def _answer(self, data: bytes) -> None:
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(data)
        header, body = unpacker.unpack(), unpacker.unpack()
        answered = self._waiting.pop(header[SYNC])
        status = header[REQUEST_TYPE]
        if status:
            answered(Reply(status & 0x7FFF, body.get(ERROR_24)))
        else:
            answered(Reply(0, body.get(DATA)))


class Stream:
    """One stream of a connection.

    Parameters:
        pipeline: The connection.
        number: The stream's id; 0 for requests outside of streams.
    """

    def __init__(self, pipeline: Pipeline, number: int) -> None:
        self.pipeline = pipeline
        self._number = number

    def send(self, request_type: int, body: Mapping[int, Any]) -> asyncio.Future[Reply | None]:
        """Send a request; the future's result is the argument of `answered` in `Pipeline.send`."""
        future: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()

        def answered(reply: Reply | None) -> None:
            if not future.done():
                future.set_result(reply)

        self.pipeline.send(request_type, body, answered, stream_id=self._number)
        return future
