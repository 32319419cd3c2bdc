"""The box with the Python methods whose places compiled ones have taken."""

from __future__ import annotations

import pytest

from iproto_server import native
from iproto_server.box.api.space import Space, Spaces
from iproto_server.box.api.space_index import Index, Indexes
from iproto_server.box.memtx.indexed_space import IndexedSpace
from iproto_server.box.memtx.memtx_space import MemtxSpace

_CLASSES = (
    IndexedSpace,
    MemtxSpace,
    Space,
    Index,
    Spaces,
    Indexes,
)
_OWNERS: dict[str, type] = {each.__name__: each for each in _CLASSES}


def use_python_methods(patch: pytest.MonkeyPatch) -> None:
    """Put all of them back, until the patch is undone; nothing happens where nothing is compiled."""
    for name, python in native.in_python.items():
        owner, _, method = name.partition(".")
        if method and owner in _OWNERS:
            compiled = getattr(_OWNERS[owner], method)
            for each in [each for each, value in vars(_OWNERS[owner]).items() if value is compiled]:
                patch.setattr(_OWNERS[owner], each, python)
