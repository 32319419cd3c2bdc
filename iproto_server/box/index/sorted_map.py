"""The ordered map that TREE indexes are made of: the compiled one, or else one on BTrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iproto_server import native

if TYPE_CHECKING or not native.IS_COMPILED:
    from iproto_server.box.index.btrees_map import Tree
else:
    # BTrees is imported only if it is used, because that takes long: the package builds all of its families.
    Tree = native.module.compiled_class("Tree")

__all__ = ["Tree"]
