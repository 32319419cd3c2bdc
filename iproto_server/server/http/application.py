"""The ASGI applications: what is served under which path."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Sequence
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from iproto_server.server.http.dashboard import Dashboard
from iproto_server.server.http.health import Health
from iproto_server.server.http.http_connection import MAX_REQUESTS
from iproto_server.server.http.metrics_page import MetricsPage
from iproto_server.server.limits.rate_limited_log import RateLimitedLog

_PROBES: Final = ("/health", "/ready")
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class SecurityHeaders:
    """Middleware that gives all responses the headers which browsers need to keep pages apart.

    Parameters:
        app: the next application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class LimitedRequests:
    """Limits how many requests of an address are handled at a time, and what their failures log.

    Probes have places of their own, because they are answered at once.

    Parameters:
        app: the application.
        refuse: whether to refuse a request that is one too many; it gets the client's address.
        log: logs failures.
    """

    def __init__(self, app: ASGIApp, refuse: Callable[[str], bool], log: RateLimitedLog) -> None:
        self._app = app
        self._refuse = refuse
        self._log = log
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in _PROBES:
            await self._run(scope, receive, send)
            return
        if self._running >= MAX_REQUESTS and self._refuse(_peer(scope)):
            busy = JSONResponse({"error": "too many requests at a time"}, 503, {"Retry-After": "1"})
            await SecurityHeaders(busy)(scope, receive, send)
            return
        self._running += 1
        try:
            await self._run(scope, receive, send)
        finally:
            self._running -= 1

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request. A failure ends here, because uvicorn would log each with its traceback."""
        has_begun = False

        async def send_noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        except ClientDisconnect:
            self._log.event(logging.DEBUG, "an HTTP client left during its request", peer=_peer(scope))
        except asyncio.CancelledError:
            self._log.event(logging.DEBUG, "an HTTP request was cut off by the stop", peer=_peer(scope))
        except Exception as error:  # noqa: BLE001  # a fault of the server, logged here
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.name}, {place.filename}:{place.lineno}"
            self._log.event(
                logging.ERROR,
                "an HTTP request failed",
                key=(type(error), where),
                peer=_peer(scope),
                path=scope["path"],
                error=repr(error),
                where=where,
            )
            if not has_begun:  # else Starlette has answered
                failed = JSONResponse({"error": "the server has failed; see its log"}, 500)
                await SecurityHeaders(failed)(scope, receive, send)


def _peer(scope: Scope) -> str:
    client = scope["client"]
    return f"{client[0]}:{client[1]}" if client else "unix/:"


def http_application(
    health: Health, metrics: MetricsPage | None, dashboard: Dashboard | None = None
) -> Starlette:
    """Make the application of an address.

    Parameters:
        health: `/health` and `/ready`.
        metrics: `/metrics`; None if another address has them.
        dashboard: the dashboard and its API; None if another address has them.
    """
    routes: list[BaseRoute] = [Route("/health", health.health), Route("/ready", health.ready)]
    if metrics is not None:
        routes += _metrics_routes(metrics)
    middleware = [Middleware(SecurityHeaders)]
    if dashboard is not None:
        routes += dashboard.routes
        middleware += dashboard.middleware
    return Starlette(routes=routes, middleware=middleware)


def _metrics_routes(metrics: MetricsPage) -> Sequence[Route]:
    return [Route("/metrics", metrics.metrics), Route("/metrics/prometheus", metrics.metrics)]
