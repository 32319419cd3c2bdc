"""Features of only one of the servers, and their errors."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import pytest

from tests.interchange.database.contents import assert_same
from tests.interchange.database.home import OURS, TARANTOOL, Home
from tests.interchange.database.packing import extension
from tests.interchange.database.statements import Statement, create_index, create_space, insert
from tests.interchange.database.world import PLAIN

DATETIME = extension(4, (1_600_000_000).to_bytes(8, "little"))

KNOWN_SINCE_LATER: dict[str, tuple[list[Statement], str]] = {
    "2.7, UUIDs among scalars": (
        [create_index("plain", "pk", (1, "scalar")), insert(PLAIN, UUID(int=1))],
        "Tuple field 1 type does not match one required by operation: expected scalar",
    ),
    "2.10, datetimes": (
        [create_index("plain", "pk", (1, "datetime")), insert(PLAIN, DATETIME)],
        "Wrong index parts: unknown field type",
    ),
}


@pytest.mark.parametrize("what", KNOWN_SINCE_LATER)
def test_an_old_tarantool_refuses_what_newer_ones_know(home: Home, what: str) -> None:
    """Our server has the types of Tarantool 2.11; moving to an older Tarantool excludes the newer ones."""
    statements, reason = KNOWN_SINCE_LATER[what]
    with home.of(OURS) as inhabitant:
        inhabitant.do([create_space(PLAIN, "plain"), *statements])
        kept = inhabitant.contents()
    before = home.files()
    with pytest.raises(AssertionError, match=reason), home.of(TARANTOOL):
        pass
    assert home.files() == before
    with home.of(OURS) as inhabitant:
        assert_same(inhabitant.contents(), kept)


def test_where_ours_has_no_definition_for_them_types_do_not_matter(home: Home) -> None:
    """A field without a type, or of type `any`, holds values that an older Tarantool does not know."""
    with home.of(OURS) as inhabitant:
        inhabitant.do([create_space(PLAIN, "plain"), create_index("plain", "pk", (1, "unsigned"))])
        inhabitant.do([insert(PLAIN, 1, DATETIME), insert(PLAIN, 2, [UUID(int=1), Decimal("1.5"), DATETIME])])
        kept = inhabitant.contents()
    with home.of(TARANTOOL) as inhabitant:
        assert_same(inhabitant.contents(), kept)


def test_rows_above_a_megabyte_have_to_be_allowed(home: Home) -> None:
    """Our server accepts rows as large as a request may be; Tarantool's limit is an option."""
    with home.of(OURS) as inhabitant:
        inhabitant.do([create_space(PLAIN, "plain"), create_index("plain", "pk", (1, "unsigned"))])
        inhabitant.do([insert(PLAIN, 1, "x" * 3 * 1024**2)])
        kept = inhabitant.contents()
    with pytest.raises(AssertionError, match="memtx_max_tuple_size"), home.of(TARANTOOL):
        pass
    with home.of(TARANTOOL, memtx_max_tuple_size=4 * 1024**2) as inhabitant:
        assert_same(inhabitant.contents(), kept)
