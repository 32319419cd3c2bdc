"""The format of Tarantool's logs and snapshots.

A file has a text header (`XlogHeader`), blocks of rows, and an end marker if it was closed properly.
`XlogReader` reads files of Tarantool 1.7 to 3.x; `XlogWriter` writes files that these versions read.
"""

from iproto_server.storage.xlog.block_reader import Block, Damage, OnDamage
from iproto_server.storage.xlog.decoder import Change, decode_rows
from iproto_server.storage.xlog.encoder import (
    RowEncoder,
    delete_body,
    encode_row,
    insert_body,
    update_body,
    upsert_body,
)
from iproto_server.storage.xlog.header import FileType, XlogHeader
from iproto_server.storage.xlog.reader import XlogReader
from iproto_server.storage.xlog.row import Row, RowFlag, RowType
from iproto_server.storage.xlog.writer import XlogWriter

__all__ = [
    "Block",
    "Change",
    "Damage",
    "FileType",
    "OnDamage",
    "Row",
    "RowEncoder",
    "RowFlag",
    "RowType",
    "XlogHeader",
    "XlogReader",
    "XlogWriter",
    "decode_rows",
    "delete_body",
    "encode_row",
    "insert_body",
    "update_body",
    "upsert_body",
]
