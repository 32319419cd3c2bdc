"""Loading that leaves all rows to the careful path, as if compiled code knew none of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from iproto_server.box.index.index import Index
from iproto_server.box.index.tree_index import TreeIndex
from iproto_server.storage.recovery import log_replay, snapshot_rows


@contextmanager
def careful_loading() -> Iterator[None]:
    """Load the rows of files one by one."""
    with (
        patch.object(snapshot_rows, "append_rows", lambda *arguments: (0, False)),
        patch.object(log_replay, "replay_rows", lambda *arguments: (0, False)),
        patch.object(TreeIndex, "append", Index.append),
        patch.object(TreeIndex, "build_from", Index.build_from),
    ):
        yield
