"""Views of compiled trees: what they show while the tree changes, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.native._native import Tree, TreeView, memory_usage
from tests.plugins.profiles import examples

UNSIGNED = (((0, "unsigned", False),), 1, False)
NUMBER = (((0, "number", False),), 1, False)
STRING = (((0, "string", False),), 1, False)
BY_SECOND_FIELD = (((1, "unsigned", False), (0, "unsigned", False)), 1, False)
ALL = (10**6, 10**9)


def view_of(tree: Tree) -> TreeView:
    return TreeView(tree)


def number_key(number: int) -> bytes:
    return number.to_bytes(8, "big")


def row(number: int, text: str = "") -> bytes:
    return codec.pack([number, text])


def tree_of(*numbers: int) -> Tree:
    tree = Tree(UNSIGNED)
    for number in numbers:
        tree[number_key(number)] = row(number)
    return tree


def test_rows_are_shown_as_they_were() -> None:
    tree = tree_of(1, 3, 5, 7)
    view = view_of(tree)
    assert view.take(1, 1000) == [row(1)]
    tree[number_key(3)] = row(3, "changed")
    tree[number_key(4)] = row(4)
    del tree[number_key(5)]
    tree.insert(number_key(8), row(8))
    tree[number_key(1)] = row(1, "passed")
    assert view.kept == 3
    assert view.take(*ALL) == [row(3), row(5), row(7)]
    assert view.is_done
    assert view.kept == 0
    assert view.take(*ALL) == []
    assert tree.range_values(None, None, 0, 10, False) == [
        row(1, "passed"),
        row(3, "changed"),
        row(4),
        row(7),
        row(8),
    ]


def test_a_view_of_an_empty_tree_is_done() -> None:
    tree = tree_of()
    view = view_of(tree)
    assert view.is_done
    tree[number_key(1)] = row(1)
    assert view.take(*ALL) == []
    assert view.take_numbered(b"", 1, b"", *ALL) == (b"", 0)


def test_rows_are_numbered_in_one_piece() -> None:
    numbers = [0x7E, 0x7F, 0x80, 0xFF, 0x100, 0xFFFF, 0x10000, 0xFFFFFFFF, 0x100000000]
    for first in numbers:
        tree = tree_of(1, 2, 3)
        tree[number_key(4)] = row(4, "x" * 5000)
        view = view_of(tree)
        data, count = view.take_numbered(b"head", first, b"tail", 3, 10**6)
        expected = [
            b"head",
            codec.pack(first),
            b"tail",
            row(1),
            b"head",
            codec.pack(first + 1),
            b"tail",
            row(2),
        ]
        assert data == b"".join((*expected, b"head", codec.pack(first + 2), b"tail", row(3)))
        assert count == 3
        assert view.take_numbered(b"", 0, b"", 10, 1) == (b"\x00" + row(4, "x" * 5000), 1)
        assert view.take_numbered(b"", 0, b"", 10, 1) == (b"", 0)
        assert view.is_done


def test_a_step_ends_with_the_row_that_fills_it() -> None:
    tree = tree_of(*range(100))
    view = view_of(tree)
    size = len(row(0))
    assert view.take(10, size) == [row(0)]
    assert view.take(10, size + 1) == [row(1), row(2)]
    assert view.take(3, 1000) == [row(3), row(4), row(5)]


def test_rows_added_ahead_of_the_walk_count_as_looked_at() -> None:
    tree = tree_of(1, 100)
    view = view_of(tree)
    for number in range(2, 100):
        tree[number_key(number)] = row(number)
    assert view.take(1, 1000) == [row(1)]
    steps = []
    while not view.is_done:
        steps.append(view.take(10, 1000))
    assert [len(step) for step in steps] == [0] * 9 + [1]
    assert steps[-1] == [row(100)]


def test_a_view_keeps_its_tree() -> None:
    view = view_of(tree_of(1, 2))
    assert view.take(*ALL) == [row(1), row(2)]


def test_a_tree_with_a_view_is_not_cleared() -> None:
    tree = tree_of(1)
    view = view_of(tree)
    with pytest.raises(RuntimeError, match="a view is open"):
        tree.clear()
    view.close()
    view.close()
    tree.clear()
    assert len(tree) == 0


def test_entries_of_a_tree_that_was_emptied_are_appended_again() -> None:
    tree = tree_of(1, 2, 3)
    view = view_of(tree)
    for number in (1, 2, 3):
        del tree[number_key(number)]
    tree.load([number_key(number) for number in (2, 4)], [row(2, "new"), row(4)])
    assert tree.append([number_key(5)], [row(5)])
    assert view.take(*ALL) == [row(1), row(2), row(3)]


def test_keys_that_only_python_makes() -> None:
    tree = Tree(NUMBER)
    odd = codec.pack([Decimal("1.5"), "as it was"])
    tree[b"\x00\x01"] = odd
    view = view_of(tree)
    tree[b"\x00\x01"] = codec.pack([Decimal("1.50"), "changed"])
    assert view.take(*ALL) == [odd]
    pairs = Tree()
    pairs[b"key"] = b""
    pairs[b"second"] = b"value"
    view = view_of(pairs)
    del pairs[b"key"]
    pairs[b"other"] = b"new"
    assert view.take(*ALL) == [b"", b"value"]


def test_what_is_kept_is_freed() -> None:
    tree = tree_of(*range(1000))
    before = memory_usage()
    view = view_of(tree)
    for number in range(1000):
        tree[number_key(number)] = row(number, "x" * 100)
        tree[number_key(number)] = row(number)
    assert view.kept == 1000
    assert memory_usage()[1] > before[1] + 8000
    view.close()
    assert memory_usage()[1] == before[1]
    assert memory_usage()[2] == before[2]


def test_trees_of_references_have_no_views() -> None:
    primary = tree_of(1)
    others: tuple[Any, ...] = (Tree(BY_SECOND_FIELD, primary), None, [], b"")
    for what in others:
        with pytest.raises(TypeError, match="rows of its own"):
            view_of(what)
    for arguments in ((), (primary, primary)):
        with pytest.raises(TypeError):
            TreeView(*arguments)


WRONG: list[tuple[Callable[[Any], object], type[Exception]]] = [
    (lambda view: view.take(), TypeError),
    (lambda view: view.take(1), TypeError),
    (lambda view: view.take("1", 1), TypeError),
    (lambda view: view.take(1, None), TypeError),
    (lambda view: view.take(0, 1), ValueError),
    (lambda view: view.take(1, 0), ValueError),
    (lambda view: view.take(-1, 1), ValueError),
    (lambda view: view.take(2**64, 1), OverflowError),
    (lambda view: view.take_numbered(b"", 1, b"", 1), TypeError),
    (lambda view: view.take_numbered("", 1, b"", 1, 1), TypeError),
    (lambda view: view.take_numbered(b"", 1, None, 1, 1), TypeError),
    (lambda view: view.take_numbered(b"", "1", b"", 1, 1), TypeError),
    (lambda view: view.take_numbered(b"", -1, b"", 1, 1), OverflowError),
    (lambda view: view.take_numbered(b"", 2**64, b"", 1, 1), OverflowError),
    (lambda view: view.take_numbered(b"", 1, b"", 0, 1), ValueError),
]


@pytest.mark.parametrize(("call", "error"), WRONG)
def test_wrong_arguments_are_refused(call: Callable[[Any], object], error: type[Exception]) -> None:
    view = view_of(tree_of(1))
    with pytest.raises(error):
        call(view)
    assert view.take(*ALL) == [row(1)]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 40), st.text(max_size=3)),
        st.tuples(st.just("remove"), st.integers(0, 40), st.just("")),
        st.tuples(st.just("take"), st.integers(1, 6), st.just("")),
        st.tuples(st.just("number"), st.integers(1, 6), st.just("")),
    )
)


@examples(200)
@given(st.sets(st.integers(0, 40)), STEPS, st.sampled_from(["rows", "texts", "pairs"]))
def test_any_changes(numbers: set[int], steps: list[tuple[str, int, str]], kind: str) -> None:
    def key(number: int) -> bytes:
        if kind == "texts":
            return b"%020d\x00\x00" % number
        return number_key(number)

    def new_row(number: int, text: str = "") -> bytes:
        return codec.pack([f"{number:020}", text]) if kind == "texts" else row(number, text)

    tree = {"rows": Tree(UNSIGNED), "texts": Tree(STRING), "pairs": Tree()}[kind]
    for number in numbers:
        tree[key(number)] = new_row(number)
    expected = [new_row(number) for number in sorted(numbers)]
    found: list[bytes] = []
    view = view_of(tree)
    for what, number, text in steps:
        if what == "set":
            tree[key(number)] = new_row(number, text)
        elif what == "remove" and tree.get(key(number)) is not None:
            del tree[key(number)]
        elif what == "take":
            found += view.take(number, 10**6)
        elif what == "number":
            data, count = view.take_numbered(b"\xff", 0, b"", number, 10**6)
            pieces = data.split(b"\xff")[1:]
            assert [piece[0] for piece in pieces] == list(range(count))
            found += [piece[1:] for piece in pieces]
    while not view.is_done:
        found += view.take(3, 20)
    assert found == expected
