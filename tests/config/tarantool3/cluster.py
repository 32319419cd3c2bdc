"""A cluster's configuration, and what is read from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from iproto_server.config.config import Config, ConfigError, load_config


def load(
    tmp_path: Path,
    text: str,
    name: str | None = None,
    environment: Mapping[str, str] | None = None,
    **arguments: object,
) -> Config:
    """The configuration of a file."""
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return load_config({"instance_name": name, **arguments}, environment, file)


def refusal(
    tmp_path: Path, text: str, name: str | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Why a file is refused, without its directory."""
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text, name, environment)
    message = str(raised.value)
    assert "\n" not in message
    return message.replace(f"{tmp_path}/", "")
