"""`/health`: the process answers. `/ready`: the database is recovered and takes changes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from iproto_server.server.stats.readiness import Readiness


class Health:
    """Answers probes.

    Parameters:
        readiness: tells whether the server is ready.
    """

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness

    async def health(self, request: Request) -> Response:
        """Answer that the process is alive."""
        return JSONResponse({"status": "alive"})

    async def ready(self, request: Request) -> Response:
        """Answer whether the server is ready: 200, or 503 and the reason."""
        problem = self._readiness.problem()
        if problem is None:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "not ready", "reason": problem}, 503)
