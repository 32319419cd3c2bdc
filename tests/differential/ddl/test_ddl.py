"""DDL as rows of the system spaces, on a real Tarantool and on our server.

The answers, the increase of the schema version, and the rows of the system spaces must be equal.

Excluded, as deliberately different:

- Engines other than memtx, synchronous spaces, views of one's own, RTREE and BITSET indexes, functional
  indexes, sequences, constraints: they are refused, they are not served.
- A function's body is Lua: it is kept and never run.
- Ids beyond 32 bits: Tarantool cuts the number but stores the row as it came, and has a row about another
  object then.
- An unknown option of a function, a password hash that is no string: Tarantool 2.6.0 crashes, or reads what
  is not its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.differential.access.account_cases import FUNCTIONS, PRIVILEGES, USERS
from tests.differential.both import Both
from tests.differential.conftest import start_both
from tests.differential.ddl.ddl_world import (
    WORLD,
    World,
)
from tests.differential.ddl.definition_cases import INDEXES, MORE_SPACES, SPACES, TRUNCATIONS
from tests.differential.ddl.system_rows import (
    Request,
)
from tests.iproto_client import (
    DELETE,
    INSERT,
    KEY,
    REPLACE,
    TUPLE,
    UPDATE,
    UPSERT,
)

# Some tests change system spaces for good, so these have servers of their own.
box_servers = pytest.fixture(scope="module", name="box_servers")(start_both)


@pytest.fixture
def world(both: Both) -> Iterator[World]:
    world = World(both)
    world.clear()
    for request in WORLD:
        assert both.request(request.kind, request.body).ok
    yield world
    world.clear()


def described(case: Request | list[Request]) -> str:
    """A name for a case, short enough to be read."""
    requests = case if isinstance(case, list) else [case]
    words = {INSERT: "insert", REPLACE: "replace", UPDATE: "update", UPSERT: "upsert", DELETE: "delete"}
    first = requests[0]
    what = first.body.get(TUPLE) if first.kind != UPDATE else [first.body[KEY], first.body[TUPLE]]
    text = repr(first.body.get(KEY) if what is None else what)
    dots = " ..." if len(text) > 90 or len(requests) > 1 else ""
    return f"{words.get(first.kind, 'select')} {text[:90]}{dots}"


def cases(*requests: Request | list[Request]) -> Callable[..., Any]:
    """Send each case to both servers, with fresh contents."""
    return pytest.mark.parametrize("case", requests, ids=described)


def check(world: World, case: Request | list[Request]) -> None:
    world.ask(*(case if isinstance(case, list) else [case]))
    world.compare_rows()


@cases(*SPACES, *MORE_SPACES)
def test_spaces(world: World, case: Request | list[Request]) -> None:
    check(world, case)


@cases(*INDEXES)
def test_indexes(world: World, case: Request | list[Request]) -> None:
    check(world, case)


@cases(*TRUNCATIONS)
def test_truncating(world: World, case: Request | list[Request]) -> None:
    check(world, case)


@cases(*USERS)
def test_users(world: World, case: Request | list[Request]) -> None:
    check(world, case)


@cases(*PRIVILEGES)
def test_privileges(world: World, case: Request | list[Request]) -> None:
    check(world, case)


@cases(*FUNCTIONS)
def test_functions(world: World, case: Request | list[Request]) -> None:
    check(world, case)
