"""Random snippets of Lua by module: good calls and bad ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.lua.modules.random_snippets import calls
from tests.lua.modules.random_snippets.decimals import decimal_snippet
from tests.lua.modules.random_snippets.files import files_snippet
from tests.lua.modules.random_snippets.pipelines import fun_snippet
from tests.lua.modules.random_snippets.tap import tap_snippet
from tests.lua.modules.random_snippets.texts import json_snippet, yaml_snippet
from tests.lua.modules.random_snippets.uuids import uuid_snippet

SNIPPETS: Mapping[str, Callable[[Random], str]] = {
    "crypto": calls.crypto_snippet,
    "decimal": decimal_snippet,
    "digest": calls.digest_snippet,
    "errno": calls.errno_snippet,
    "fio": files_snippet,
    "fun": fun_snippet,
    "gsub": calls.gsub_snippet,
    "json": json_snippet,
    "os": calls.os_snippet,
    "string": calls.string_snippet,
    "table": calls.table_snippet,
    "tap": tap_snippet,
    "uri": calls.uri_snippet,
    "utf8": calls.utf8_snippet,
    "uuid": uuid_snippet,
    "yaml": yaml_snippet,
}
