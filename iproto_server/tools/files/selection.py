"""The selection of files and rows for a command."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import TruncatedFileError
from iproto_server.storage.xlog import FileType, Row, XlogReader

SYSTEM_SPACE_MAX = 511
"""Spaces up to this one describe the database; they are left out unless asked for."""

_SPACES = 280  # the space `_space`, whose rows name the others


class Selection:
    """Tells which rows are wanted. What is left out does not narrow the choice.

    Parameters:
        spaces: spaces, by id or name; a name counts from the row on that gives it to a space.
        from_lsn: the first LSN.
        to_lsn: the LSN to end before.
        before: the moment to end before, in seconds since 1970.
        replicas: the members that made the row; 0 for rows that are not replicated and those of snapshots.
        show_system: whether rows of system spaces are wanted though no space is asked for.
    """

    def __init__(
        self,
        *,
        spaces: Collection[int | str] = (),
        from_lsn: int = 0,
        to_lsn: int | None = None,
        before: float | None = None,
        replicas: Collection[int] = (),
        show_system: bool = False,
    ) -> None:
        self._ids = {space for space in spaces if isinstance(space, int)}
        self._names = {space for space in spaces if isinstance(space, str)}
        self._unknown = set(self._names)
        self._from_lsn = from_lsn
        self._to_lsn = 2**64 if to_lsn is None else to_lsn
        self._before = float("inf") if before is None else before
        self._replicas = frozenset(replicas)
        self._all_spaces = not spaces
        self._first_space = 0 if show_system else SYSTEM_SPACE_MAX + 1

    @property
    def unknown_names(self) -> list[str]:
        """The names that no space has had so far."""
        return sorted(self._unknown)

    def wants(self, row: Row) -> bool:
        """Tell whether a row is wanted; rows must come in their order."""
        space_id = row.space_id
        if self._names and space_id == _SPACES and row.tuple_raw is not None:
            self._learn(row.tuple_raw)
        return (
            self._from_lsn <= row.lsn < self._to_lsn
            and row.timestamp < self._before
            and (
                (space_id is None or space_id >= self._first_space)
                if self._all_spaces
                else space_id in self._ids
            )
            and (not self._replicas or row.replica_id in self._replicas)
        )

    def is_behind(self, row: Row) -> bool:
        """Tell whether this row and all that follow it in a file come too late.

        LSNs only rise among the rows of one member, so this can be known only if one is asked for.
        """
        return len(self._replicas) == 1 and row.replica_id in self._replicas and row.lsn >= self._to_lsn

    def _learn(self, raw: bytes) -> None:
        """Take a row of `_space`, whose first and third fields are the space's id and name."""
        fields = codec.split_array(raw)
        if len(fields) > 2:
            space_id, name = codec.unpack(fields[0]), codec.unpack(fields[2])
            if name in self._names and isinstance(space_id, int):
                self._ids.add(space_id)
                self._unknown.discard(name)


def selected_rows(reader: XlogReader, selection: Selection) -> Iterator[list[Row]]:
    """Read the rows that are wanted.

    Parameters:
        reader: of a file of which nothing was read yet.
        selection: which rows.

    Yields:
        The rows of each block, in order; the list may be empty.

    Raises:
        XlogError: at damage that the reader does not skip; TruncatedFileError after the last row of an
            incomplete snapshot.
        OSError: the file cannot be read.
    """
    wants = selection.wants
    for _, rows in reader.row_blocks():
        yield [row for row in rows if wants(row)]
        if selection.is_behind(rows[-1]):
            return
    if reader.header.file_type is FileType.SNAPSHOT and not reader.closed and not reader.damages:
        raise TruncatedFileError(reader.name, reader.good_end, "the snapshot ends without end marker")
