"""Files with options, and the errors that they cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from iproto_server.config.config import ConfigError, load_config


def toml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "server.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(arguments: dict[str, object] | None = None, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(arguments, environment)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def refusal_of_file(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(file=toml(tmp_path, text))
    return str(caught.value).replace(f"{tmp_path}/", "")
