"""Notices the end of a client whose connection is not read from."""

from __future__ import annotations

import asyncio
import logging

from iproto_server.server.connection.closing import END_GRACE
from iproto_server.server.connection.responses import RespondingConnection
from iproto_server.server.connection.states import ClientEnd


class WatchedConnection(RespondingConnection):
    """A connection that is watched for hangups while it is held; see `ClosingConnection`."""

    __slots__ = ()

    def _watch_for_end(self) -> None:
        """Watch for the client's end from now on, or act on an end that was seen already."""
        if self.is_lost:
            return
        if self._end is ClientEnd.UNWATCHED:
            connected = self._transport.get_extra_info("socket")
            if connected is None or self._transport.is_closing():
                return
            self._descriptor = connected.fileno()
            try:
                self._server.hangups.watch(self, self._descriptor)
            except OSError as error:
                self._server.rate_limited_log.event(
                    logging.WARNING, "the end of a held connection will not be seen", reason=error.strerror
                )
            else:
                self._end = ClientEnd.WATCHED
        elif self._end is not ClientEnd.WATCHED:
            asyncio.get_running_loop().call_soon(self._act_on_end)

    def hung_up(self, is_gone: bool) -> None:
        """Handle the client's end of the connection. While it is read from, reading notices that, too.

        Parameters:
            is_gone: whether it can be sent nothing more; otherwise it has only sent all it has to send.
        """
        self._end = self._end.after_hangup(is_gone)
        self._act_on_end()

    def _act_on_end(self) -> None:
        """Cancel waiting calls, as nobody could take anything of what they wait for.

        Requests that came before the end are handled; if the client is gone altogether, without an answer.
        """
        if self.is_closing or not self.is_held:
            return
        is_news = not self.session.is_ended
        if is_news:
            self._server.hung_up_while_held += 1
            self.session.end()
        if self._end is ClientEnd.GONE:
            self._transport.abort()
        elif is_news:
            self._server.let_held_go_on()
            asyncio.get_running_loop().call_later(END_GRACE, self._end_soon)
