"""A client of the dashboard's API, as a script would write it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tests.server.http.dashboard_application import PASSWORD
from tests.server.http.http_client import HttpAnswer, request


class ApiClient:
    """Keeps the cookie of its login.

    Parameters:
        port: the port of HTTP.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie = ""

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
    ) -> HttpAnswer:
        """Send a request; a body is JSON unless it is given as bytes."""
        all_headers = {"Cookie": self.cookie} if self.cookie else {}
        if method in ("POST", "PUT"):
            all_headers["Content-Type"] = "application/json"
            raw = json.dumps({} if body is None else body).encode() if raw is None else raw
        answer = request(self.port, f"/api/{path}", method, all_headers | dict(headers or {}), body=raw)
        if "set-cookie" in answer.headers and answer.status == 200:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def get(self, path: str) -> Any:
        """Return the value at a path."""
        return _value(self.send("GET", path))

    def post(self, path: str, **body: object) -> Any:
        """Return what a POST answers."""
        return _value(self.send("POST", path, body))

    def put(self, path: str, **body: object) -> Any:
        """Return what a PUT answers."""
        return _value(self.send("PUT", path, body))

    def delete(self, path: str) -> Any:
        """Return what a DELETE answers."""
        return _value(self.send("DELETE", path))

    def refused(self, path: str, body: object = None, method: str = "POST") -> tuple[int, str]:
        """Return the status and the text of a request that is refused."""
        answer = self.send(method, path, body)
        assert answer.status >= 400, answer
        return answer.status, json.loads(answer.text)["error"]

    def log_in(self, user: str, password: str) -> HttpAnswer:
        """Try to log in."""
        return self.send("POST", "login", {"user": user, "password": password})


def _value(answer: HttpAnswer) -> Any:
    assert answer.status == 200, answer
    return json.loads(answer.text)


def logged_in(port: int, user: str) -> ApiClient:
    """A client that has logged in as a user of the application for tests of the dashboard."""
    client = ApiClient(port)
    assert client.log_in(user, PASSWORD).status == 200
    return client


def of_queue(name: str, rest: str = "") -> str:
    """The path of a queue."""
    return f"queues/{quote(name, safe='')}{rest}"
