"""Values of tasks as JSON, and JSON that clients send."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.text.strict_json import parse_json

BODY_MAX: Final = 1024 * 1024
"""Maximum bytes of a request's body."""
_EXACT: Final = 2**53
"""The largest integer up to which all are exact in JavaScript; larger ones become texts."""


class ApiError(Exception):
    """A request that is refused.

    Parameters:
        status: the HTTP status.
        message: the text for the client.
        headers: further headers of the response.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers


def plain(value: object) -> object:
    """Return a value in the types of JSON.

    What JSON lacks becomes a text: integers beyond 2^53, infinite numbers, decimals, UUIDs, times, keys of
    maps. Bytes become a text, too; those that are no UTF-8 become the surrogates U+DC80 to U+DCFF.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if -_EXACT <= value <= _EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, codec.ExtType):
        return f"ext({value.code}, {value.data.hex()})"
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, BoxError):
        return value.message
    if isinstance(value, codec.Datetime):
        return _datetime(value)
    return str(value)


def _key(key: object) -> str:
    found = plain(key)
    return found if isinstance(found, str) else json.dumps(found)


def _datetime(value: codec.Datetime) -> str:
    try:
        return value.to_datetime().isoformat()
    except (OverflowError, ValueError):
        return f"{value.seconds}.{value.nsec:09d}"


def json_text(value: object) -> str:
    """Return a plain value as JSON in ASCII."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a plain value."""
    return Response(json_text(value), status, headers=headers, media_type="application/json")


async def read_object(request: Request, *names: str, most: int = BODY_MAX) -> dict[str, Any]:
    """Read a request's body, a JSON object with some of these names.

    Parameters:
        request: the request.
        names: the names that the object may have.
        most: maximum bytes of the body.

    Raises:
        ApiError: 415 for another content type, 413 for a large body, 400 for anything else.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise ApiError(415, "the body must have the content type application/json")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:  # h11 accepts no more than 20 digits
        raise ApiError(413, f"the body is larger than {most} bytes")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise ApiError(413, f"the body is larger than {most} bytes")
    try:
        value = parse_json(body.decode())
    except ValueError as error:
        raise ApiError(400, f"the body is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ApiError(400, "the body must be a JSON object")
    for name in value:
        if name not in names:
            known = ", ".join(names) or "none"
            raise ApiError(400, f"there is no field {json.dumps(name)}; the fields are: {known}")
    return value
