"""JSON paths: any text consists of tokens without gaps, and the tokens in brackets lead to the same place."""

from __future__ import annotations

from typing import Final

from iproto_server.box.types.json_path import JsonToken, TokenKind, parse_json_path
from tests.fuzz.target import Target

_ENDS: Final = (TokenKind.END, TokenKind.FAULT)


def spelled(token: JsonToken) -> str:
    """Write a step in brackets."""
    if token.kind is TokenKind.INDEX:
        return f"[{token.index + 1}]"
    if token.kind is TokenKind.ANY:
        return "[*]"
    quote = "'" if '"' in token.key else '"'
    return f"[{quote}{token.key}{quote}]"


def check(data: bytes) -> None:
    path = data.decode("utf-8", "surrogateescape")
    *steps, last = parse_json_path(path)
    assert last.kind in _ENDS
    position = 0
    for step in steps:
        assert step.kind not in _ENDS
        assert step.start == position < step.end <= len(path)
        assert step.kind is not TokenKind.KEY or step.key
        assert 0 <= step.index < 2**31
        position = step.end
    assert last.start == position
    if last.kind is TokenKind.END:
        assert position == len(path)
        *again, end = parse_json_path("".join(map(spelled, steps)))
        assert end.kind is TokenKind.END
        assert [(step.kind, step.target) for step in again] == [(step.kind, step.target) for step in steps]
    else:
        assert position < last.end <= len(path) + 1


TARGET: Final = Target(
    check,
    [
        text.encode("utf-8", "surrogateescape")
        for text in (
            "a.b[3][\"x y\"]['z'][*]",
            "[1].é_9",
            "[99999999999]",
            "[0]",
            "..",
            "a[",
            "['\udcff']",
            ".a.",
            '["a\'b"]',
        )
    ],
)
