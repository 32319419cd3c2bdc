"""Requests of a client, in the bytes that it sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.interchange.database.packing import pack
from tests.iproto_client import (
    CALL,
    DELETE,
    FUNCTION_NAME,
    INDEX_ID,
    INSERT,
    KEY,
    OPERATIONS,
    REPLACE,
    SPACE_ID,
    TUPLE,
    UPDATE,
    UPSERT,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A request.

    Parameters:
        kind: Its type.
        body: Its body, packed.
    """

    kind: int
    body: bytes


def insert(space: int, *fields: Any) -> Statement:
    return Statement(INSERT, pack({SPACE_ID: space, TUPLE: fields}))


def replace(space: int, *fields: Any) -> Statement:
    return Statement(REPLACE, pack({SPACE_ID: space, TUPLE: fields}))


def update(space: int, key: list[Any], *operations: list[Any], index: int = 0) -> Statement:
    return Statement(UPDATE, pack({SPACE_ID: space, INDEX_ID: index, KEY: key, TUPLE: operations}))


def upsert(space: int, row: list[Any], *operations: list[Any]) -> Statement:
    return Statement(UPSERT, pack({SPACE_ID: space, TUPLE: row, OPERATIONS: operations}))


def delete(space: int, *key: Any, index: int = 0) -> Statement:
    return Statement(DELETE, pack({SPACE_ID: space, INDEX_ID: index, KEY: key}))


def call(procedure: str, *arguments: Any) -> Statement:
    return Statement(CALL, pack({FUNCTION_NAME: procedure, TUPLE: arguments}))


def snapshot() -> Statement:
    return call("box.snapshot")


def create_space(space: int, name: str, **options: Any) -> Statement:
    return call("box.schema.space.create", name, {"id": space, **options})


def create_index(space: str, name: str, *parts: Any, **options: Any) -> Statement:
    """Create an index.

    Parameters:
        space: The space's name.
        name: The index's.
        parts: Pairs of a field's number, from 1, and its type, optionally with further options of the part.
        options: The index's options.
    """
    described = [{"field": field, "type": kind, **dict(*other)} for field, kind, *other in parts]
    return call(f"box.space.{space}:create_index", name, {"parts": described, **options})


def atomically(*steps: list[Any]) -> Statement:
    """Build a transaction of several steps.

    Parameters:
        steps: Lists of a space's name, a method's name and its arguments.
    """
    return call("interchange.atomically", steps)


def in_vain(*steps: list[Any]) -> Statement:
    """A transaction that is rolled back."""
    return call("interchange.in_vain", steps)
