"""`/metrics`: the metrics for Prometheus."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from iproto_server.metrics.exposition import Family, negotiate, render
from iproto_server.server.limits.rate_limited_log import RateLimitedLog


class MetricsPage:
    """Writes the metrics, one page at a time.

    Parameters:
        families: collects the metrics.
        alias: returns the label `alias` of all series.
        token: the token that clients have to send; None: none.
        log: logs refused clients.
    """

    def __init__(
        self,
        families: Callable[[], AsyncIterator[Family]],
        alias: Callable[[], str],
        token: str | None,
        log: RateLimitedLog,
    ) -> None:
        self._families = families
        self._alias = alias
        self._token = None if token is None else token.encode()
        self._log = log
        self._turn = asyncio.Lock()

    async def metrics(self, request: Request) -> Response:
        """Answer with the metrics in the format that the client asks for."""
        if self._token is not None and not _has_token(request, self._token):
            peer = request.client.host if request.client else "unix/:"
            self._log.event(logging.WARNING, "refused the metrics: no valid token", key=peer, peer=peer)
            return PlainTextResponse(
                "the metrics need a token\n", 401, headers={"WWW-Authenticate": "Bearer"}
            )
        form = negotiate(",".join(request.headers.getlist("accept")))
        async with self._turn:
            page = await render(self._families(), form, {"alias": self._alias()})
        return Response(page, headers={"Content-Type": form.content_type})


def _has_token(request: Request, token: bytes) -> bool:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode("utf-8", "replace"), token)
