"""Loads the rows of snapshots."""

from __future__ import annotations

from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.storage.xlog import Block, XlogReader


def load_block(loader: Loader, reader: XlogReader, block: Block) -> int:
    """Load the rows of a block of a snapshot.

    Parameters:
        loader: Takes the rows.
        reader: The reader of the snapshot.
        block: The block.

    Returns:
        The number of rows read.

    Raises:
        XlogError: There is damage that the reader does not skip.
    """
    rows = reader.packed_rows(block)
    if rows is None:
        return 0
    position = 0
    while (position := rows.append_to(position, loader.tree_of)) < len(rows):
        space_id, tuples, position = rows.run(position)
        loader.load(space_id, tuples)
    return len(rows)
