"""The initial rows of a database, those of a freshly bootstrapped Tarantool 2.6 (`bootstrap.json`)."""

from __future__ import annotations

import json
import pkgutil
from typing import Any

from iproto_server.box.catalog.catalog import Catalog
from iproto_server.box.catalog.function_def import SQL_BUILTIN
from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.codec import msgpack as codec


def bootstrap(catalog: Catalog) -> None:
    """Load the initial rows into a catalog.

    Parameters:
        catalog: a catalog without spaces.
    """
    text = pkgutil.get_data("iproto_server.box.catalog", "bootstrap.json")
    assert text is not None
    rows: dict[str, list[list[Any]]] = json.loads(text)
    numbers = {fields[2]: fields[0] for fields in rows["_space"]}
    with Loader(catalog) as loader:
        for name, space_rows in rows.items():
            loader.load(numbers[name], [codec.pack(fields) for fields in space_rows])
        loader.finish()
    catalog.users.sql_builtins = frozenset(
        function.name for function in catalog.users.functions.values() if function.language == SQL_BUILTIN
    )
