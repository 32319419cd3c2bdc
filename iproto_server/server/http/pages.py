"""The dashboard's page, and the files that it loads. Nothing is loaded from elsewhere."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_FOLDER: Final = Path(__file__).parent / "static"
_INDEX: Final = "index.html"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


class Pages:
    """Serves the files of the dashboard, which it reads once."""

    def __init__(self) -> None:
        self._files = {
            file.name: (file.read_bytes(), _TYPES[file.suffix])
            for file in _FOLDER.iterdir()
            if file.suffix in _TYPES
        }
        self._tags = {
            name: f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            for name, (content, _) in self._files.items()
        }

    async def index(self, request: Request) -> Response:
        """Answer with the page."""
        return self._answer(request, _INDEX)

    async def file(self, request: Request) -> Response:
        """Answer with a file."""
        return self._answer(request, request.path_params["name"])

    def _answer(self, request: Request, name: str) -> Response:
        if name not in self._files:
            return PlainTextResponse("there is no such file\n", 404)
        content, kind = self._files[name]
        headers = {
            "Cache-Control": "no-cache",
            "Content-Security-Policy": _POLICY,
            "Content-Type": kind,
            "ETag": self._tags[name],
        }
        if request.headers.get("if-none-match") == self._tags[name]:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers)
