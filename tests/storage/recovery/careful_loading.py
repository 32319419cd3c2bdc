"""Loading that leaves all rows to the careful path, as if compiled code knew none of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.index.index import Index
from iproto_server.box.index.tree_index import TreeIndex
from iproto_server.storage.recovery.log_replay import LogReplay


@contextmanager
def careful_loading() -> Iterator[None]:
    """Load the rows of files one by one."""
    with (
        patch.object(Loader, "tree_of", lambda loader, space_id: None),
        patch.object(LogReplay, "_target_of", lambda replay, space_id: None),
        patch.object(TreeIndex, "append", Index.append),
        patch.object(TreeIndex, "build_from", Index.build_from),
    ):
        yield
