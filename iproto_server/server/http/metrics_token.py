"""The token that clients of the metrics have to send, if other machines can reach them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iproto_server.config.config import ConfigError

TOKEN_MIN: Final = 16
"""Minimum length of the token."""


def read_token(file: Path) -> str:
    """Return the token in a file.

    Parameters:
        file: the file, with the token in one line.

    Raises:
        ConfigError: the file cannot be read, or it has no token.
    """
    try:
        token = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"metrics_token_file {file}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError(f"metrics_token_file {file} is not a text") from None
    if len(token) < TOKEN_MIN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"metrics_token_file {file} has no token: at least {TOKEN_MIN} letters, digits and signs in one"
            " line, such as the output of: openssl rand -hex 32"
        )
    return token
