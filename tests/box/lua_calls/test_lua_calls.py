"""Functions under `box.` for clients: Lua's conventions for arguments, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, BoxError, ErrorCode
from iproto_server.box.lua_calls.calls import Call, RemoteCalls
from tests.box.refusal import refusal


@pytest.fixture
def box() -> Box:
    box = Box()
    space = box.schema.create_space("t", format=[("id", "unsigned"), ("word", "string")])
    space.create_index("primary")
    space.create_index("word", parts=["word"], unique=False)
    space.insert([1, "one"])
    return box


def call(box: Box, name: str, *arguments: Any) -> object:
    return RemoteCalls(box).find(name)(list(arguments))


def test_fields_are_counted_from_one(box: Box) -> None:
    call(box, "box.space.t:update", 1, [["=", 2, "uno"]])
    assert box.space.t.get(1) == [1, "uno"]
    call(box, "box.space.t:upsert", [1, "x"], [["=", 2, "eins"]])
    assert box.space.t.get(1) == [1, "eins"]
    call(box, "box.space.t:create_index", "both", {"parts": [2, "string", 1, "unsigned"]})
    assert [part.field_no for part in box.space.t.index.both.tree.key_def.parts] == [1, 0]


@pytest.mark.parametrize("given", [None, [], {}, {"limit": None}, {"limit": 5}])
def test_nil_is_no_option(box: Box, given: object) -> None:
    assert call(box, "box.space.t:select", [], given) == [[1, "one"]]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (5, "options should be a table"),
        ({"nosuch": 1}, "unexpected option 'nosuch'"),
        ({"if_not_exists": "x"}, "options parameter 'if_not_exists' should be of type boolean"),
    ],
)
def test_options_are_checked(box: Box, given: object, text: str) -> None:
    with refusal(ErrorCode.ILLEGAL_PARAMS, text):
        call(box, "box.schema.create_space", "u", given)


def test_a_single_nil_is_a_value(box: Box) -> None:
    assert call(box, "box.session.peer") == (None,)


@pytest.mark.parametrize(
    "name",
    [
        "box",
        "box.",
        "box.nosuch",
        "box.space",
        "box.space.t",
        "box.space.t.select",
        "box.space.t:nosuch",
        "box.space.nosuch:select",
        "box.space.t.index.nosuch:select",
        "box.space.t.index.word:nosuch",
        "box.space.t:__class__",
        "box.space.t:select:select",
        "box.schema.user.nosuch",
        "box.catalog",
    ],
)
def test_nothing_else_can_be_called(box: Box, name: str) -> None:
    with refusal(ErrorCode.NO_SUCH_PROC, f"Procedure '{name}' is not defined"):
        call(box, name)


WRONG: list[Any] = [None, 5, -1, 1.5, True, "x", b"x", [], [[]], {}, {"x": 1}, {1: 2}, [None], 2**64 - 1]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_any_wrong_argument_is_refused_in_words_of_the_box(box: Box, wrong: object) -> None:
    calls = RemoteCalls(box)
    spaces = [f"box.space.t:{method}" for method in SPACE_METHODS]
    indexes = [
        f"box.space.t.index.{index}:{method}" for index in ("primary", "word") for method in INDEX_METHODS
    ]
    for name in (*spaces, *indexes, *FUNCTIONS):
        for arguments in (
            [],
            [wrong],
            [wrong, wrong],
            [1, wrong],
            ["ann", wrong, wrong, wrong, wrong, wrong],
        ):
            text = refusal_of(box, calls.find(name), arguments)
            assert not any(word in text for word in PYTHON_WORDS), (name, arguments, text)


def refusal_of(box: Box, function: Call, arguments: list[Any]) -> str:
    """The error of a call, or None; the call changes nothing in either case."""

    def attempt() -> None:
        function(list(arguments))
        raise Undo

    try:
        box.atomic(attempt)
    except BoxError as error:
        return error.message
    except Undo:
        pass
    return ""


class Undo(Exception):
    """Undoes the effects of a call."""


SPACE_METHODS = [
    *("select", "get", "count", "update", "delete", "insert", "replace", "put", "upsert", "len", "bsize"),
    *("truncate", "drop", "rename", "format", "create_index"),
]
INDEX_METHODS = ["select", "get", "count", "len", "min", "max", "update", "delete", "drop", "rename"]
FUNCTIONS = [
    "box.info",
    *(f"box.session.{name}" for name in ("id", "uid", "euid", "user", "type", "sync", "peer", "exists")),
    "box.schema.create_space",
    "box.schema.space.create",
    *(f"box.schema.func.{name}" for name in ("create", "exists", "drop")),
    *(
        f"box.schema.{kind}.{name}"
        for kind in ("user", "role")
        for name in ("create", "exists", "info", "drop", "grant", "revoke")
    ),
    "box.schema.user.passwd",
    "box.schema.user.password",
]
PYTHON_WORDS = ["NoneType", "<class", "' object", "positional", "keyword", "subscriptable", "iterable", "__"]


class TestWithoutRights:
    """What a user without any right to a space is told of it; the same as by 2.6.0."""

    @pytest.fixture
    def as_lenny(self, box: Box) -> Callable[..., object]:
        box.schema.create_space("no_index")
        box.schema.user.create("lenny")
        return lambda name, *arguments: box.session.su("lenny", call, box, name, *arguments)

    @pytest.mark.parametrize("method", ["len", "count"])
    def test_a_space_without_an_index_is_empty(self, as_lenny: Callable[..., object], method: str) -> None:
        assert as_lenny(f"box.space.no_index:{method}") == 0

    @pytest.mark.parametrize("method", ["select", "get", "delete", "update"])
    def test_an_index_that_is_missing_is_named_first(
        self, as_lenny: Callable[..., object], method: str
    ) -> None:
        with refusal(ErrorCode.NO_SUCH_INDEX_ID, "No index #0 is defined in space 'no_index'"):
            as_lenny(f"box.space.no_index:{method}", [1])

    @pytest.mark.parametrize("method", ["len", "count", "select", "get"])
    def test_rows_are_not_counted(self, as_lenny: Callable[..., object], method: str) -> None:
        with refusal(ErrorCode.ACCESS_DENIED, "Read access to space 't' is denied for user 'lenny'"):
            as_lenny(f"box.space.t:{method}", 1)

    def test_a_format_is_not_shown(self, box: Box, as_lenny: Callable[..., object]) -> None:
        with refusal(ErrorCode.NO_SUCH_SPACE, f"Space '#{box.space.t.id}' does not exist"):
            as_lenny("box.space.t:format")
        box.schema.user.grant("lenny", "write", "space", "t")
        assert as_lenny("box.space.t:format") == box.space.t.format()
