"""Values of the fields and options of functions' rows."""

from __future__ import annotations

from typing import Any, Final

OPTIONS_OF_FUNCTIONS: Final[dict[str, list[Any]]] = {
    "setuid": [1, 0, "x", -1],
    "language": ["C", "lua", "", "no such language", 5],
    "body": [5, None],
    "routine_type": ["procedure", "x"],
    "param_list": [["any"], ["no such type"], [5], "x"],
    "returns": ["string", "no such type"],
    "aggregate": ["group", "x"],
    "sql_data_access": ["reads", "x"],
    "is_deterministic": [True, 5],
    "is_sandboxed": [True],
    "exports": [[], ["SQL"], ["no such language"], [5]],
}
FUNCTION_FIELDS: Final[dict[int, list[Any]]] = {
    3: [0, 1],
    4: ["LUA", "C", "x"],
    16: ["a comment", 5],
    17: ["2021-01-01 00:00:00"],
}
