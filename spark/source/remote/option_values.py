"""Values of options about servers."""

from __future__ import annotations

import math
from typing import Final

from iproto_server.tools.client import ServerUri
from pyspark_tarantool.source.errors import SourceError

TIMEOUT: Final = 60.0
RETRIES: Final = 3


def parse_url(text: str) -> ServerUri:
    """Parse the option `url`.

    Parameters:
        text: `[USER:PASSWORD@]HOST:PORT`, `unix:PATH`, or a path.

    Raises:
        SourceError: If it is missing or malformed; without the password.
    """
    if not text:
        raise SourceError('the option "url" is missing: [USER:PASSWORD@]HOST:PORT or unix:PATH')
    # A path needs no prefix.
    credentials, at, address = text.rpartition("@")
    if address.startswith(("/", "./")):
        text = f"{credentials}{at}unix:{address}"
    try:
        uri = ServerUri.parse(text)
    except ValueError as error:
        raise SourceError(f'the option "url": {error}') from None
    if uri.tls:
        raise SourceError('the option "url": TLS is not supported')
    return uri


def parse_count(text: str, name: str, least: int) -> int:
    """Parse a whole number.

    Parameters:
        text: The number.
        name: The option.
        least: The lowest allowed value.

    Raises:
        SourceError: If it is not such a number.
    """
    if not text.isdecimal() or int(text) < least:
        raise SourceError(f'the option "{name}" is a whole number from {least} on, not "{text}"')
    return int(text)


def parse_seconds(text: str) -> float:
    """Parse the option `timeout`.

    Parameters:
        text: Seconds above 0.

    Raises:
        SourceError: If it is not such a number.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise SourceError(f'the option "timeout" is a number of seconds above 0, not "{text}"')
    return seconds
