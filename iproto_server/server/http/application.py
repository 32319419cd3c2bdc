"""The ASGI applications: what is served under which path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from iproto_server.server.http.dashboard import Dashboard
from iproto_server.server.http.health import Health
from iproto_server.server.http.metrics_page import MetricsPage

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
