"""The groups of requests, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.differential.random.cases import (
    changes,
    definitions,
    malformed,
    protocol,
    rights,
    selects,
    sequences,
    small_spaces,
    system,
    updates,
)
from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws


@dataclass(frozen=True, slots=True)
class Group:
    """A group of requests.

    Parameters:
        case: Draws the requests of one case, in order.
        world: The initial contents of a case.
        is_started_from: Whether servers are started from our server's files after each case.
    """

    case: Callable[[Draws], list[Request]]
    world: tuple[Request, ...] = ()
    is_started_from: bool = False


GROUPS: Final = {
    "select": Group(selects.case),
    "dml": Group(changes.case),
    "update": Group(updates.update),
    "upsert": Group(updates.upsert),
    "ddl": Group(definitions.case),
    "indexes": Group(small_spaces.case),
    "access": Group(rights.case, rights.WORLD),
    "sequences": Group(sequences.case),
    "system": Group(system.case, system.WORLD, is_started_from=True),
    "protocol": Group(protocol.case),
    "malformed": Group(malformed.case),
}
