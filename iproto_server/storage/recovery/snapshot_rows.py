"""Loads the rows of snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from iproto_server.box.catalog.loader import Loader
from iproto_server.native._native import append_rows
from iproto_server.storage.snapshot import tuples_of
from iproto_server.storage.xlog import Block, XlogReader


def load_block(loader: Loader, reader: XlogReader, block: Block) -> int:
    """Load the rows of a block of a snapshot.

    Parameters:
        loader: takes the rows.
        reader: the reader of the snapshot.
        block: the block.

    Returns:
        The number of rows read.

    Raises:
        XlogError: at damage that the reader does not skip.
    """
    count, are_all = append_rows(block.payload, loader.tree_of)
    if are_all:
        return count
    tuples = tuples_of(reader, block)
    for space_id, rows in _by_space(tuples[count:]):
        loader.load(space_id, rows)
    return len(tuples)


def _by_space(tuples: list[tuple[int, bytes]]) -> Iterator[tuple[int, list[bytes]]]:
    """Group tuples by space; nearly always there is only one."""
    if not tuples:
        return
    first = tuples[0][0]
    rows = [raw for space_id, raw in tuples if space_id == first]
    if len(rows) == len(tuples):
        yield first, rows
        return
    for space_id, group in groupby(tuples, itemgetter(0)):
        yield space_id, [raw for _, raw in group]
