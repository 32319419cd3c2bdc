"""Types of command-line options."""

from __future__ import annotations

import argparse

import pytest

from bench.lib.arguments import choice, count, items, size


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("8M", 8 * 1024**2), ("2k", 2048), ("1G", 1024**3)])
def test_a_size_may_have_a_unit(text: str, number: int) -> None:
    assert size(text) == number


@pytest.mark.parametrize("text", ["", "M", "0M", "1T", "-1"])
def test_a_wrong_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        size(text)


def test_lists_are_parsed_item_by_item() -> None:
    assert items(count)("1,20") == [1, 20]
    assert items(choice("a", "b"))("b") == ["b"]
    for parse, text in ((items(count), "1,x"), (items(choice("a")), "a,c"), (items(int), "1,,2")):
        with pytest.raises(argparse.ArgumentTypeError):
            parse(text)
