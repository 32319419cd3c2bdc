"""Collations, as defined by the rows of `_collation`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from iproto_server.box.access.access_control import Privilege
from iproto_server.box.catalog.space_registry import SpaceRegistry
from iproto_server.box.key.collation import NONE_ID, Collation
from iproto_server.errors import BoxError, ErrorCode

_UINT32_MASK = 0xFFFFFFFF


class CollationCatalog(Mapping[int, Collation]):
    """The effects of rows of `_collation`: a mapping from numbers to collations.

    Parameters:
        registry: all spaces.
    """

    def __init__(self, registry: SpaceRegistry) -> None:
        self._registry = registry
        # Few of the hundreds of collations are used, so loaded rows are parsed on demand.
        self._by_id: dict[int, Collation | list[Any]] = {}

    def __getitem__(self, number: int) -> Collation:
        found = self._by_id[number]
        if isinstance(found, list):
            found = self._by_id[number] = Collation.parse(found)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def clear(self) -> None:
        """Remove all collations."""
        self._by_id.clear()

    def load(self, fields: list[Any]) -> None:
        """Load a row of a database."""
        self._by_id[fields[0] & _UINT32_MASK] = fields

    def changed(self, old: list[Any] | None, new: list[Any] | None, operation: str) -> Callable[[], None]:
        """Apply a change of a row of `_collation`.

        Raises:
            BoxError: see `Collation.parse`; UNSUPPORTED (5) for an altered collation; DROP_COLLATION (173)
                for `none` and, as in Tarantool 2.11, for one that is in use (2.6 crashes).
        """
        if old is None:
            assert new is not None
            return self._create(new)
        if new is not None:
            raise BoxError(ErrorCode.UNSUPPORTED, "collation", "alter")
        return self._drop(old)

    def _create(self, fields: list[Any]) -> Callable[[], None]:
        collation = Collation.parse(fields)
        self._check_access(Privilege.CREATE, fields)
        # Raises BoxError if ICU refuses the collation or is missing.
        _ = collation.encode
        number = fields[0] & _UINT32_MASK
        self._by_id[number] = collation

        def undo() -> None:
            del self._by_id[number]

        return undo

    def _drop(self, fields: list[Any]) -> Callable[[], None]:
        number = fields[0] & _UINT32_MASK
        if number == NONE_ID:
            raise BoxError(ErrorCode.DROP_COLLATION, "none", "system collation")
        self._check_access(Privilege.DROP, fields)
        user = self._user_of(number)
        if user is not None:
            raise BoxError(ErrorCode.DROP_COLLATION, fields[1], f"collation is referenced by {user}")
        collation = self._by_id.pop(number)

        def undo() -> None:
            self._by_id[number] = collation

        return undo

    def _user_of(self, number: int) -> str | None:
        """The kind of object that uses a collation, or None."""
        for space in self._registry:
            if any(field.collation_id == number for field in space.format.fields):
                return "space format"
            for index in space.indexes.values():
                if any(part.collation_id == number for part in index.key_def.parts):
                    return "index"
        return None

    def _check_access(self, privilege: Privilege, fields: list[Any]) -> None:
        number, name, owner = fields[:3]
        self._registry.access.check_definition(
            self._registry.current_user(), privilege, "collation", number, name, owner
        )
