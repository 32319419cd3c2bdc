"""Which names the server has, and which pages may send it requests.

A page elsewhere can make a browser send requests: to this server, with an `Origin` of its own; and to a name
of its own that it resolves to this server's address, with that name as `Host`.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from iproto_server.server.http.json_values import json_response

OPEN_PATHS: Final = frozenset({"/health", "/ready", "/metrics", "/metrics/prometheus"})
"""Paths without login: Host and Origin do not matter. Probes and Prometheus use names of their own."""
_SAFE: Final = frozenset({"GET", "HEAD"})


class KnownHosts:
    """The names under which browsers may reach the server.

    IP addresses are always known: a page elsewhere cannot have one as its name.

    Parameters:
        names: further names, without ports.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {name.lower() for name in (*names, "localhost", socket.gethostname()) if name}

    def __contains__(self, host: str) -> bool:
        """Whether a `Host` is known; its port does not matter."""
        try:
            name = urlsplit(f"//{host}").hostname
            _ = urlsplit(f"//{host}").port
        except ValueError:
            return False
        if not name or "@" in host or "/" in host or "?" in host or "#" in host:
            return False
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


class HostAndOrigin:
    """Middleware that refuses requests for unknown hosts, and those that pages of other origins send.

    Parameters:
        app: the next application.
        hosts: the known hosts.
    """

    def __init__(self, app: ASGIApp, hosts: KnownHosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = None if scope["path"] in OPEN_PATHS else self._problem(scope)
        if problem is None:
            await self._app(scope, receive, send)
        else:
            status, text = problem
            await json_response({"error": text}, status)(scope, receive, send)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host not in self._hosts:
            return 421, "unknown Host: use the address of --http, or add the name with --http-host NAME"
        origin = headers.get("origin")
        if origin is not None and not _is_same(origin, scope["scheme"], host):
            return 403, "requests from pages of other origins are refused"
        # Browsers tell it of requests without Origin as well; a link to the page itself is harmless.
        site = headers.get("sec-fetch-site", "same-origin")
        is_page = scope["method"] in _SAFE and not scope["path"].startswith("/api/")
        if site not in ("same-origin", "none") and not is_page:
            return 403, "requests from pages of other origins are refused"
        return None


def _is_same(origin: str, scheme: str, host: str) -> bool:
    """Whether an origin is that of a host. A proxy in front of plain HTTP may do TLS."""
    given, _, place = origin.partition("://")
    if given not in ("http", "https") or (scheme == "https" and given != "https"):
        return False
    default = ":443" if given == "https" else ":80"
    return place.lower().removesuffix(default) == host.lower().removesuffix(default)
