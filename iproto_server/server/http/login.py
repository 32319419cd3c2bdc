"""Logins of browsers: users of the box with their passwords, cookies, and links with a token.

The delays of wrong passwords are those of AUTH, and both count as one.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from iproto_server.box import Box
from iproto_server.box.access.access_control import GUEST, Credentials, Privilege
from iproto_server.box.access.session import Session
from iproto_server.errors import BoxError
from iproto_server.password import CHAP_SHA1, EMPTY_PASSWORD_HASH, PAP_SHA256
from iproto_server.protocol.auth import Proof, is_right, scramble
from iproto_server.server.http.json_values import ApiError, json_response, read_object
from iproto_server.server.limits.login_delays import NAME_SIZE, address_of
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.operators.operator_calls import OperatorCalls
from iproto_server.server.requests.authentication import Authentication
from iproto_server.text.counting import counted

LIFETIME: Final = 12 * 3600.0
"""Seconds after which a user has to log in again."""
IDLE: Final = 1800.0
"""Seconds without a request after which a user has to log in again."""
MAX_SESSIONS: Final = 100
"""Maximum number of sessions; the one that was used the longest time ago ends."""
MAX_SESSIONS_PER_USER: Final = 20
"""The same for one user."""
_BODY_MAX: Final = 16 * 1024
"""Maximum bytes of a request's body, which needs no login."""
_TEXT_MAX: Final = 1024
"""Maximum characters of a name, a password or a token."""
_TOKEN_BYTES: Final = 32
KIND: Final = "http"
"""The type of the sessions."""


@dataclass(slots=True)
class _Login:
    """A login.

    Attributes:
        session: its session in the box.
        auth: the hashes of the user's password at the login: another password ends it.
        ends: when it ends, in steady time.
        used: when it was last used.
    """

    session: Session
    auth: dict[str, object]
    ends: float
    used: float


class Logins:
    """The logins, by the hash of their cookie: in memory there is nothing to log in with.

    Parameters:
        box: the box.
        now: returns steady time in seconds.
    """

    def __init__(self, box: Box, now: Callable[[], float] = time.monotonic) -> None:
        self._box = box
        self._now = now
        self._logins: OrderedDict[bytes, _Login] = OrderedDict()

    def __len__(self) -> int:
        return len(self._logins)

    def begin(self, user: Credentials, peer: str) -> str:
        """Log a user in, and return the cookie's value."""
        self.end_expired()
        own = [key for key, login in self._logins.items() if login.session.user is user]
        if len(own) >= MAX_SESSIONS_PER_USER:
            self._end(own[0])
        elif len(self._logins) >= MAX_SESSIONS:
            self._end(next(iter(self._logins)))
        session = self._box.session.open(KIND, peer)
        session.become(user)
        value = secrets.token_urlsafe(_TOKEN_BYTES)
        now = self._now()
        self._logins[_hash(value)] = _Login(session, user.auth, now + LIFETIME, now)
        return value

    def find(self, value: str, peer: str) -> Session | None:
        """Return the session of a cookie, which now has that peer; None if it has ended."""
        key = _hash(value)
        login = self._logins.get(key)
        if login is None:
            return None
        if not self._is_valid(login):
            self._end(key)
            return None
        login.used = self._now()
        self._logins.move_to_end(key)
        login.session.peer = peer
        return login.session

    def end(self, value: str) -> None:
        """Log out."""
        key = _hash(value)
        if key in self._logins:
            self._end(key)

    def end_expired(self) -> None:
        """End the logins whose time is over."""
        for key in [key for key, login in self._logins.items() if not self._is_valid(login)]:
            self._end(key)

    def end_all(self) -> None:
        """Log all out."""
        for key in list(self._logins):
            self._end(key)

    def _is_valid(self, login: _Login) -> bool:
        user, now = login.session.user, self._now()
        return (
            now < login.ends
            and now < login.used + IDLE
            and self._box.access.find_id(user.user_id) is user
            and user.auth is login.auth
            and bool(user.universe & Privilege.SESSION)
        )

    def _end(self, key: bytes) -> None:
        self._box.session.close(self._logins.pop(key).session)


def _hash(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "replace")).digest()


class LoginLink:
    """A link that logs in as guest, for as long as no user has a password. Each works once.

    Parameters:
        box: the box.
        announce: tells the operator a new token.
    """

    def __init__(self, box: Box, announce: Callable[[str], None]) -> None:
        self._box = box
        self._announce = announce
        self._token: str | None = None

    def offer(self) -> None:
        """Announce a new token, if guest may look at queues and no user has a password."""
        self._token = None
        if self._may_be_used():
            self._token = secrets.token_urlsafe(_TOKEN_BYTES)
            self._announce(self._token)

    def use(self, token: str) -> Credentials | None:
        """Return guest if the token is right; the next token is announced then."""
        right = self._token
        if right is None or not hmac.compare_digest(right.encode(), token.encode("utf-8", "replace")):
            return None
        is_allowed = self._may_be_used()
        self.offer()
        return self._box.access.by_id(GUEST) if is_allowed else None

    def _may_be_used(self) -> bool:
        access = self._box.access
        return not access.has_passwords and bool(access.by_id(GUEST).universe & Privilege.READ)


class LoginPages:
    """Handles logins and logouts.

    Parameters:
        box: the box.
        logins: the logins.
        link: the link for servers without passwords.
        authentication: has the delays, and counts failures.
        operator: tells what a user may do.
        is_secure: whether browsers use TLS, whatever the connection says: a proxy does it.
        log: logs logins.
        instance: returns the name of this instance for people.
    """

    def __init__(
        self,
        box: Box,
        logins: Logins,
        link: LoginLink,
        authentication: Authentication,
        operator: OperatorCalls,
        is_secure: bool,
        log: RateLimitedLog,
        instance: Callable[[], str],
    ) -> None:
        self._box = box
        self._instance = instance
        self._logins = logins
        self._link = link
        self._authentication = authentication
        self._operator = operator
        self._is_secure = is_secure
        self._log = log
        # Browsers send cookies to all ports of a host, so that servers need different names.
        self._suffix = str(box.info()["uuid"]).partition("-")[0]

    async def log_in(self, request: Request) -> Response:
        """Log in with a user's password, or with a token; answer with the cookie."""
        given = await read_object(request, "user", "password", "token", most=_BODY_MAX)
        for name, text in given.items():
            if not isinstance(text, str) or not text or len(text) > _TEXT_MAX:
                raise ApiError(400, f"{name} must be a text of 1 to {_TEXT_MAX} characters")
        peer = peer_of(request)
        if given.keys() == {"user", "password"}:
            user = await self._check(given["user"], peer, lambda: self._by_password(**given))
        elif given.keys() == {"token"}:
            user = await self._check("", peer, lambda: self._link.use(given["token"]))
        else:
            raise ApiError(400, "give user and password, or a token")
        self._log_out(request)
        value = self._logins.begin(user, peer)
        address = address_of(peer)
        self._log.event(
            logging.INFO, "logged in", key=(address, user.name), user=user.name, address=address, over="http"
        )
        response = self._describe(user)
        response.set_cookie(
            self._cookie(request),
            value,
            path="/",
            secure=self._is_encrypted(request),
            httponly=True,
            samesite="strict",
        )
        return response

    async def log_out(self, request: Request) -> Response:
        """Log out; without a login nothing happens."""
        await read_object(request, most=_BODY_MAX)
        self._log_out(request)
        response = json_response({})
        response.delete_cookie(
            self._cookie(request),
            path="/",
            secure=self._is_encrypted(request),
            httponly=True,
            samesite="strict",
        )
        return response

    async def session(self, request: Request) -> Response:
        """Tell who is logged in, and what that user may do."""
        return self._describe(self.session_of(request).user)

    def session_of(self, request: Request) -> Session:
        """Return a request's session. Raises ApiError 401 without a login."""
        value = request.cookies.get(self._cookie(request))
        session = None if value is None else self._logins.find(value, peer_of(request))
        if session is None:
            raise ApiError(401, "log in first")
        return session

    def _describe(self, user: Credentials) -> Response:
        may = sorted(self._operator.allowed(user))
        return json_response({"user": user.name, "may": may, "instance": self._instance()})

    async def _check(self, name: str, peer: str, find: Callable[[], Credentials | None]) -> Credentials:
        """Check a login after its delay. Raises ApiError."""
        authentication = self._authentication
        address, shown = address_of(peer), name[:NAME_SIZE]
        attempt = authentication.delays.begin(address, name)
        if attempt.delay:
            authentication.delayed += 1
            await asyncio.sleep(attempt.delay)
        user = find()
        if user is None:
            authentication.failures += 1
            self._log.event(
                logging.WARNING,
                "login failed",
                key=address,
                user=shown,
                address=address,
                over="http",
            )
        else:
            attempt.succeeded()
        self._tell_triggers(name if user is None else user.name, user is not None, peer)
        if user is None:
            what = "the user or the password is wrong" if name else "the link has been used, or is wrong"
            if attempt.delay:
                wait = math.ceil(authentication.delays.delay(address, name))
                headers = {"Retry-After": str(wait)}
                raise ApiError(429, f"{what}; wait {counted(wait, 'second')} before the next try", headers)
            raise ApiError(401, what)
        try:
            self._box.access.check_session(user)
        except BoxError as error:
            raise ApiError(403, error.message) from None
        return user

    def _tell_triggers(self, name: str, is_right: bool, peer: str) -> None:
        """Run the triggers of authentications, any of which may refuse. Raises ApiError."""
        box = self._box
        triggers = box.session.authentication_triggers.functions
        if not triggers:
            return
        session = box.session.open(KIND, peer)
        try:
            for trigger in triggers:
                box.run(session, trigger, name, is_right)
        except BoxError as error:
            raise ApiError(403, error.message) from None
        finally:
            box.session.close(session)

    def _by_password(self, user: str, password: str) -> Credentials | None:
        """Return the user if the password is right. The time does not depend on whether it exists."""
        found = self._box.access.find(user)
        if found is not None and found.is_role:
            found = None
        auth = None if found is None else found.auth
        salt = secrets.token_bytes(20)
        proofs = Proof(CHAP_SHA1, scramble(password, salt)), Proof(PAP_SHA256, password)
        # An empty password, as guest may have, is none.
        fits = [is_right(auth, proof, salt) for proof in proofs]
        if auth is not None and auth.get(CHAP_SHA1) == EMPTY_PASSWORD_HASH:
            return None
        return found if any(fits) else None

    def _log_out(self, request: Request) -> None:
        value = request.cookies.get(self._cookie(request))
        if value is not None:
            self._logins.end(value)

    def _cookie(self, request: Request) -> str:
        prefix = "__Host-" if self._is_encrypted(request) else ""
        return f"{prefix}iproto-{self._suffix}"

    def _is_encrypted(self, request: Request) -> bool:
        return self._is_secure or request.url.scheme == "https"


def peer_of(request: Request) -> str:
    """Return a client's address in the format of `box.session.peer()`."""
    client = request.client
    if client is None or not client.host:
        return "unix/:"
    return f"[{client.host}]:{client.port}" if ":" in client.host else f"{client.host}:{client.port}"
