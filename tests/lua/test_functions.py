"""The functions of Python that modules of Lua call."""

from __future__ import annotations

from importlib import import_module

from iproto_server.lua.functions import FUNCTIONS, LATER, Later


def test_functions_that_are_imported_late_are_those_of_their_modules() -> None:
    for module, names in LATER.items():
        functions = import_module(f"iproto_server.lua.functions.{module}").FUNCTIONS
        assert set(names.split()) == set(functions)


def test_a_function_that_is_imported_late_is_the_same() -> None:
    function = FUNCTIONS["unicode_upper"]
    assert isinstance(function, Later)
    assert function("\u00fc".encode()) == "\u00dc".encode()
