"""The server's side of TLS on a plain transport of the event loop.

The event loops' own TLS discards what has not been handed over when a client closes. Here nothing is
discarded: `TlsTransport.decrypt` returns it after the end, too. Encryption is that of the `ssl` module.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

_READ_SIZE: Final = 256 * 1024


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """The protocol of a plain transport, and the transport of the protocol above it.

    Unlike those of the event loops, it can be open in one direction: a client that sends no more can still be
    sent answers, unless it has said goodbye (close_notify), as most clients refuse data after that.

    Parameters:
        context: the server's TLS context.
        protocol: creates the protocol above, after the handshake.
        handshake_timeout: maximum duration of the handshake in seconds.

    Attributes:
        opened: done after the handshake; fails with OSError if there was none.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        protocol: Callable[[], asyncio.BaseProtocol],
        handshake_timeout: float,
    ) -> None:
        super().__init__()
        self._context = context
        self._make_protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._protocol: asyncio.Protocol | None = None
        self._plain: asyncio.Transport  # from `connection_made` on, as
        self._is_made = False
        self._is_paused = False
        self._has_ended = False
        self._has_goodbye = False
        self._is_end_told = False
        self._is_shut = False
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self._timer = self._loop.call_later(handshake_timeout, self._is_late, handshake_timeout)

    # -- the protocol of the plain transport --

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the client's handshake."""
        self._plain = cast(asyncio.Transport, transport)
        self._is_made = True

    def data_received(self, data: bytes) -> None:
        """Go on with the handshake, or hand over what was sent."""
        self._incoming.write(data)
        if self._protocol is None:
            self._shake_hands()
        else:
            self._hand_over()

    def eof_received(self) -> bool:
        """The client sends no more, with or without saying so."""
        if self._protocol is None:
            self._fail(ConnectionResetError("the client has gone during the handshake"))
            return False
        self._has_ended = True
        self._hand_over()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the protocol above, which can still `decrypt` what has been received."""
        self._is_shut = True
        if self._protocol is None:
            self._fail(error or ConnectionAbortedError("the connection was closed during the handshake"))
        else:
            self._protocol.connection_lost(error)

    def pause_writing(self) -> None:
        """Tell the protocol above."""
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Tell the protocol above."""
        if self._protocol is not None:
            self._protocol.resume_writing()

    # -- the handshake --

    def _shake_hands(self) -> None:
        if self.opened.done():
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._flush()  # the alert says why
            self._fail(error)
            return
        self._timer.cancel()
        self._protocol = cast(asyncio.Protocol, self._make_protocol())
        self._flush()
        self.opened.set_result(None)
        self._protocol.connection_made(self)
        self._hand_over()

    def give_up(self) -> None:
        """Close the connection if there was no handshake."""
        self._timer.cancel()
        if self._protocol is None and self._is_made:
            self._plain.abort()

    def _is_late(self, seconds: float) -> None:
        self._fail(ConnectionAbortedError(f"the TLS handshake has taken longer than {seconds} seconds"))

    def _fail(self, error: Exception) -> None:
        self._timer.cancel()
        if not self.opened.done():
            self.opened.set_exception(error)
        self.close()

    # -- what arrives --

    def _hand_over(self) -> None:
        """Hand over what has arrived, until the protocol above pauses; then its end."""
        assert self._protocol is not None
        while not self._is_paused and not self._is_shut:
            try:
                data = self._tls.read(_READ_SIZE)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLError:
                # Nothing after it can be understood; the protocol above hears of it as of a lost connection.
                self._flush()
                self._has_ended = self._is_end_told = True
                self._plain.close()
                return
            if not data:
                self._has_ended = self._has_goodbye = True
                break
            self._protocol.data_received(data)
        if self._outgoing.pending:
            self._flush()  # new keys, for example
        if self._has_ended and not self._is_paused and not self._is_end_told:
            self._is_end_told = True
            if not self._plain.is_closing():
                self._plain.pause_reading()
            if not self._is_shut and not self._protocol.eof_received():
                self.close()

    def decrypt(self, data: bytes) -> bytes:
        """Decrypt bytes that were received and not handed over, for example after the connection's end.

        Parameters:
            data: encrypted bytes that follow those of the last call.

        Returns: what they contain, with what has been held back before; empty if that is nothing.
        """
        parts: list[bytes] = []
        try:
            self._incoming.write(data)
            while part := self._tls.read(_READ_SIZE):
                parts.append(part)
        except ssl.SSLError:
            pass  # More has to come, or what follows is no TLS.
        return b"".join(parts)

    # -- the transport of the protocol above --

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information about the connection, by the names of asyncio."""
        if name == "sslcontext":
            return self._context
        if name == "ssl_object":
            return self._tls
        if name == "peercert":
            return self._tls.getpeercert()
        if name == "cipher":
            return self._tls.cipher()
        return self._plain.get_extra_info(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol above."""
        assert self._protocol is not None
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol above."""
        self._protocol = cast(asyncio.Protocol, protocol)

    def is_closing(self) -> bool:
        """Whether the transport is closed, or will be when all is sent."""
        return self._is_shut or self._plain.is_closing()

    def is_reading(self) -> bool:
        """Whether the protocol above is handed over what arrives."""
        return not self._is_paused

    def pause_reading(self) -> None:
        """Hand over nothing more before `resume_reading`."""
        self._is_paused = True
        if not self._plain.is_closing():
            self._plain.pause_reading()

    def resume_reading(self) -> None:
        """Hand over again what arrives, and what has been held back."""
        if self._is_paused:
            self._is_paused = False
            if not self._plain.is_closing() and not self._has_ended:
                self._plain.resume_reading()
            self._loop.call_soon(self._hand_over)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send; does nothing after the client's goodbye."""
        if data and not self._has_goodbye and not self.is_closing():
            self._tls.write(data)
            self._flush()

    def can_write_eof(self) -> bool:
        """Whether `write_eof` is supported: no."""
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the number of unsent bytes above which the protocol is asked to pause."""
        if not self.is_closing():
            self._plain.set_write_buffer_limits(high, low)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return the low and the high limit."""
        return self._plain.get_write_buffer_limits()

    def get_write_buffer_size(self) -> int:
        """Return the number of unsent bytes."""
        return self._plain.get_write_buffer_size()

    def close(self) -> None:
        """Say goodbye, and close when all is sent."""
        if self.is_closing():
            return
        if self._protocol is not None:
            with suppress(ssl.SSLError):  # The client has not said goodbye yet, and need not.
                self._tls.unwrap()
        self._flush()
        self._plain.close()

    def abort(self) -> None:
        """Close at once."""
        self._plain.abort()

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data and not self._plain.is_closing():
            self._plain.write(data)
