"""The space definitions of a database, from the rows of `_space` and `_index` in its files."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from iproto_server.box.catalog.foreign.definitions import served_index
from iproto_server.box.catalog.foreign.versions import UNKNOWN
from iproto_server.box.index.index_def import IndexDef
from iproto_server.box.key.collation import Collation, Collations
from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.tuple.format import Format
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.incarnations import Incarnation, shape_of
from pyspark_tarantool.source.schema.space_rows import format_rows, index_row

MEMTX: Final = "memtx"
_SYSVIEW: Final = "sysview"


class FieldDefinition(NamedTuple):
    """A field of a space's tuples.

    Attributes:
        name: Its name; `field_N`, counted from 1, for an unnamed field that an index uses.
        type: Its type.
        is_nullable: Whether it may be nil or missing.
    """

    name: str
    type: FieldType
    is_nullable: bool


@dataclass(frozen=True)
class SpaceDefinition:
    """The definition of a space. It can be pickled.

    Attributes:
        id: Its number.
        name: Its name.
        field_count: The number of fields of every tuple; 0 for any number.
        format_rows: Its format, as in `_space`.
        index_rows: Its rows of `_index`, in the order of the indexes' ids.
        collation_rows: The rows of `_collation` by id.
        is_local: Whether it is a local space, which is not replicated.
        engine: The engine that stores its rows.
        is_temporary: Whether its rows are in the server's memory only.
        is_synchronous: Whether its changes count only after a quorum of members has confirmed them.
        incarnations: Dropped spaces with the same id, in the order of their drops.
    """

    id: int
    name: str
    field_count: int
    format_rows: tuple[Any, ...]
    index_rows: tuple[Any, ...]
    collation_rows: Mapping[int, Any]
    is_local: bool
    engine: str = MEMTX
    is_temporary: bool = False
    is_synchronous: bool = False
    incarnations: tuple[Incarnation, ...] = ()

    @property
    def since(self) -> Mapping[int, int]:
        """The clock up to which rows are of a dropped space with other fields; empty if there was none."""
        shape = self.shape
        return next((each.until for each in reversed(self.incarnations) if each.shape != shape), {})

    @property
    def is_stored(self) -> bool:
        """Whether snapshots have its rows."""
        return self.engine == MEMTX and not self.is_temporary

    def check_logged(self) -> None:
        """Check that logs have the changes of the space.

        Raises:
            SourceError: If they have none, and a query would only find nothing.
        """
        if self.is_temporary:
            raise SourceError(
                f"space '{self.name}' is temporary: its rows are in the server's memory only, neither in "
                'snapshots nor in logs: read them from the server, with the option "url"'
            )
        if self.engine == _SYSVIEW:
            raise SourceError(
                f"space '{self.name}' is a view without rows of its own: read "
                f"'{self.name.replace('_v', '_', 1)}'"
            )

    def check_stored(self) -> None:
        """Check that snapshots have the rows of the space.

        Raises:
            SourceError: If they have none, or not all.
        """
        self.check_logged()
        if self.engine != MEMTX:
            raise SourceError(
                f"space '{self.name}' is of the engine {self.engine}: snapshots only have the rows of memtx. "
                "Read its logged changes with mode=changes, or its rows from the server, with the option "
                '"url"'
            )

    @cached_property
    def indexes(self) -> tuple[IndexDef, ...]:
        """The indexes, the primary one first; without those of unsupported kinds.

        Raises:
            SourceError: If the primary index is missing or of an unsupported kind.
        """
        found = []
        for row in self.index_rows:
            try:
                plain = served_index(index_row(row), None, UNKNOWN)
                found.append(IndexDef.parse(plain, self.name, self._collations, self._declared.fields))
            except BoxError as error:
                if row[1] == 0 or error.code != ErrorCode.UNSUPPORTED:
                    raise SourceError(f"space '{self.name}': {error.message}") from None
        if not found or found[0].id != 0:
            raise SourceError(f"space '{self.name}' has no primary index")
        return tuple(found)

    @property
    def primary(self) -> KeyDef:
        """The key of the primary index."""
        return self.indexes[0].key_def

    @property
    def primary_fields(self) -> set[int]:
        """The fields that the primary key uses as a whole, counted from 0."""
        return {part.field_no for part in self.primary.parts if part.path is None}

    @cached_property
    def format(self) -> Format:
        """The format of tuples, including the indexes' requirements."""
        return self._declared.with_index_parts([index.key_def for index in self.indexes])

    @cached_property
    def fields(self) -> tuple[FieldDefinition, ...]:
        """The known fields: those of the format, and those that indexes use."""
        declared = [
            FieldDefinition(field.name, field.type, field.is_nullable) for field in self._declared.fields
        ]
        parts = {
            part.field_no: part for index in self.indexes for part in index.key_def.parts if not part.steps
        }
        for number in range(len(declared), max(parts, default=-1) + 1):
            part = parts.get(number)
            kind = FieldType.ANY if part is None else part.type
            declared.append(FieldDefinition(f"field_{number + 1}", kind, part is None or part.is_nullable))
        return tuple(declared)

    @property
    def shape(self) -> bytes:
        """The parts that decide about the columns."""
        return shape_of(self.format_rows, next((row for row in self.index_rows if row[1] == 0), None))

    def pack(self) -> str:
        """The definition as a text; see `unpack`."""
        values = [getattr(self, name) for name in self.__dataclass_fields__]
        return b64encode(codec.pack(values)).decode()

    @classmethod
    def unpack(cls, text: str) -> SpaceDefinition:
        """Parse a text of `pack`.

        Raises:
            ValueError: If the text is invalid.
        """
        try:
            # A table may have the text of an earlier version, which lacks the last fields.
            values = dict(zip(cls.__dataclass_fields__, codec.unpack(b64decode(text)), strict=False))
            for name in ("format_rows", "index_rows"):
                values[name] = tuple(values[name])
            values["incarnations"] = tuple(Incarnation(*each) for each in values.get("incarnations", ()))
            return cls(**values)
        except (BoxError, KeyError, TypeError) as error:
            raise ValueError(f"invalid definition of a space: {error}") from None

    @cached_property
    def _declared(self) -> Format:
        rows = format_rows(self.id, self.format_rows)
        try:
            return Format.parse(rows, self.name, self.field_count, collation_ids=self._collations)
        except BoxError as error:
            raise SourceError(f"space '{self.name}': {error.message}") from None

    @cached_property
    def _collations(self) -> Collations:
        return {number: Collation.parse(row) for number, row in self.collation_rows.items()}

    def __getstate__(self) -> dict[str, Any]:
        """The fields only: cached properties contain functions, and are computed again."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


class Definitions(Mapping[int, SpaceDefinition]):
    """The spaces of a database, by id.

    Parameters:
        spaces: The existing spaces.
        dropped: Dropped spaces, with their last definitions.

    Attributes:
        dropped: The dropped spaces by id, without those whose id is in use again.
        incarnations: Earlier spaces whose ids are in use again; those of one id in the order of their drops.
    """

    def __init__(
        self, spaces: Iterable[SpaceDefinition] = (), dropped: Iterable[SpaceDefinition] = ()
    ) -> None:
        self._by_id = {space.id: space for space in spaces}
        self.dropped = {space.id: space for space in dropped if space.id not in self._by_id}
        self._by_name = {space.name: space for space in self._by_id.values()}
        self.incarnations = [each for space in self._by_id.values() for each in space.incarnations]

    def __getitem__(self, space_id: int) -> SpaceDefinition:
        return self._by_id[space_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def space(self, name_or_id: str | int) -> SpaceDefinition:
        """Find a space.

        Raises:
            SourceError: If there is none; the message lists the existing names.
        """
        if isinstance(name_or_id, str):
            found = self._by_name.get(name_or_id)
        else:
            found = self._by_id.get(name_or_id)
        if found is None:
            names = sorted(space.name for space in self._by_id.values() if space.id > 511)
            known = f"there are {', '.join(names)}" if names else "there are only system spaces"
            raise SourceError(f"there is no space {name_or_id!r}: {known}")
        return found

    def with_dropped(self) -> Definitions:
        """All existing and dropped spaces in the files; of two with the same name, the newer one."""
        return Definitions([*self.dropped.values(), *self._by_id.values()])
