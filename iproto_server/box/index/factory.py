"""Creates indexes by type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iproto_server.box.index.hash_index import HashIndex
from iproto_server.box.index.index import Index
from iproto_server.box.index.index_def import IndexDef
from iproto_server.box.index.tree_index import TreeIndex
from iproto_server.box.key.collation import Collations
from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.tuple.format import FieldDef


def create_index(
    definition: IndexDef, space_name: str, primary: KeyDef | None = None, rows: Index | None = None
) -> Index:
    """Make an empty index of the type in its definition.

    Parameters:
        definition: the definition.
        space_name: the name of the space, for messages.
        primary: the key of the space's primary index; None for the primary index itself.
        rows: the primary index, to whose rows the entries may refer; None for entries with their own keys.
    """
    return (TreeIndex if definition.type == "TREE" else HashIndex)(definition, space_name, primary, rows)


def parse_index(
    row: Sequence[Any],
    space_name: str,
    primary: Index | KeyDef | None,
    collations: Collations | None = None,
    fields: Sequence[FieldDef] = (),
) -> Index:
    """Make the empty index of a row of `_index`.

    Parameters:
        row: the decoded row.
        space_name: the name of the space, for messages.
        primary: the space's primary index, or its key alone; None for the primary index itself.
        collations, fields: as for `IndexDef.parse`.

    Raises:
        BoxError: see `IndexDef.parse`.
    """
    definition = IndexDef.parse(row, space_name, collations, fields)
    if isinstance(primary, Index):
        return create_index(definition, space_name, primary.key_def, primary)
    return create_index(definition, space_name, primary)
