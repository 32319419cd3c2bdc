"""AUTH: checks a proof of a password, and changes the session's user.

Neither the answer, nor its delay, nor the work done for it depends on whether the user exists.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from iproto_server.box.access.access_control import GUEST
from iproto_server.box.api.box import Box
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol import auth
from iproto_server.protocol.constants import Key
from iproto_server.protocol.request import Request
from iproto_server.protocol.response import encode_ok
from iproto_server.server.limits.login_delays import NAME_SIZE, Attempt, LoginDelays, address_of
from iproto_server.server.requests.answer import Body

if TYPE_CHECKING:
    from iproto_server.box.access.access_control import Credentials
    from iproto_server.server.client_connection import ClientConnection
    from iproto_server.server.limits.rate_limited_log import RateLimitedLog

_USER_NAME, _TUPLE = int(Key.USER_NAME), int(Key.TUPLE)


class Authentication:
    """Handles AUTH.

    While an AUTH is delayed, the following requests of its connection wait, because they run as the user that
    it names. A delayed AUTH does not count as a request in flight, because the number of these is limited.

    Parameters:
        box: the database.
        failed: encodes an error as the answer to a request, given its `sync`.
        log: logs failures.

    Attributes:
        delays: computes the delays of attempts.
        failures: number of attempts with a wrong password or user.
        delayed: number of delayed attempts.
    """

    def __init__(self, box: Box, failed: Callable[[int, BaseException], bytes], log: RateLimitedLog) -> None:
        self._box = box
        self._failed = failed
        self._log = log
        self.delays = LoginDelays()
        self.failures = 0
        self.delayed = 0

    def handle(self, connection: ClientConnection, request: Request) -> bytes | None:
        """Answer an AUTH; return None if the answer is delayed."""
        body: Body = request.body
        name: str = body[_USER_NAME]
        items = auth.read_proof(body[_TUPLE])
        if not items:
            user = self._find(name)
            if user is not None and user.user_id == GUEST and auth.needs_no_proof(user.auth):
                return self._become(connection, request.sync, user, name)
        proof = auth.check_proof(items, connection.is_confidential)
        attempt = self.delays.begin(address_of(connection.session.peer), name)
        if attempt.delay:
            self.delayed += 1
            self._delay(connection, request.sync, name, proof, attempt)
            return None
        return self._prove(connection, request.sync, name, proof, attempt)

    def _find(self, name: str) -> Credentials | None:
        """Return the user of a name, if any."""
        user = self._box.access.find(name)
        return None if user is None or user.is_role else user

    def _prove(
        self, connection: ClientConnection, sync: int, name: str, proof: auth.Proof, attempt: Attempt
    ) -> bytes:
        """Check a password.

        Raises:
            BoxError: CREDS_MISMATCH, it is wrong, or there is no such user; ACCESS_DENIED, the user may have
                no session; what a trigger raises.
        """
        user = self._find(name)
        if not auth.is_right(None if user is None else user.auth, proof, connection.salt):
            self._refused(connection, name)
        assert user is not None
        attempt.succeeded()
        self._box.access.check_session(user)
        return self._become(connection, sync, user, name)

    def _become(self, connection: ClientConnection, sync: int, user: Credentials, name: str) -> bytes:
        session = connection.session
        # As in Tarantool, the user changes after all triggers have run without an error.
        for trigger in self._box.session.authentication_triggers.functions:
            self._box.run(session, trigger, name, True)
        connection.log_in(None if user.user_id == GUEST else user.name)
        session.become(user)
        address = address_of(session.peer)
        self._log.event(logging.INFO, "logged in", key=(address, name), user=name, address=address)
        return encode_ok(sync, self._box.catalog.schema_version)

    def _refused(self, connection: ClientConnection, name: str) -> None:
        """Count and log a failure. Raises BoxError CREDS_MISMATCH, or the error of a trigger."""
        session = connection.session
        self.failures += 1
        address, shown = address_of(session.peer), name[:NAME_SIZE]
        self._log.event(logging.WARNING, "login failed", key=address, user=shown, address=address)
        for trigger in self._box.session.authentication_triggers.functions:
            self._box.run(session, trigger, name, False)
        raise BoxError(ErrorCode.CREDS_MISMATCH)

    # -- delayed attempts --

    def _delay(
        self, connection: ClientConnection, sync: int, name: str, proof: auth.Proof, attempt: Attempt
    ) -> None:
        """Check a password after the delay; the connection's next requests wait as well."""
        session = connection.session

        def check() -> None:
            session.on_close.pop(attempt, None)
            if connection.is_closing:
                return
            is_right = self._answer(connection, sync, name, proof, attempt)
            if session.is_ended and not is_right:
                # The requests behind it are not those of guest; and there may be any number of attempts.
                connection.close_after_output()
            else:
                connection.resume()

        def give_up() -> None:
            # The client has closed its end, and must not get the answer before the delay is over.
            if connection.is_stopping:
                timer.cancel()
                check()
            elif not connection.has_requests:
                timer.cancel()
                connection.close_after_output()

        connection.suspend()
        timer = self._box.clock.call_later(attempt.delay, check)
        session.on_close[attempt] = give_up

    def _answer(
        self, connection: ClientConnection, sync: int, name: str, proof: auth.Proof, attempt: Attempt
    ) -> bool:
        """Answer; return whether the password is right."""
        box, session = self._box, connection.session
        is_right = False
        box.transactions.has_logged = False
        if box.transactions.take_out is not None:
            box.transactions.take_out()
        box.session.current = session
        session.sync = sync
        try:
            answer = self._prove(connection, sync, name, proof, attempt)
            is_right = True
        except BaseException as error:  # noqa: BLE001  # whatever went wrong, a request gets its answer
            answer = self._failed(sync, error)
        finally:
            box.session.current = box.session.background
        connection.reply(answer)
        return is_right
