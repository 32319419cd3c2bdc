"""The rows of a block: decoded as with the library msgpack, and encoded again."""

from __future__ import annotations

from typing import Final

from iproto_server.native._native import BlockRows
from iproto_server.storage.xlog import (
    Row,
    RowEncoder,
    RowFlag,
    RowType,
    decode_rows,
    encode_row,
)
from iproto_server.storage.xlog.decoder import change_of
from iproto_server.storage.xlog.encoder import delete_body, insert_body, update_body, upsert_body
from tests.fuzz.target import Target
from tests.native.log.reference_rows import reference_rows

TIME: Final = 1_600_000_000.5


def check(data: bytes) -> None:
    try:
        expected = reference_rows(data)
    except ValueError:
        assert_malformed(data)
        return
    rows = decode_rows(data)
    # Compared by their representations, as a NaN time does not equal itself.
    assert repr(rows) == repr(expected)
    assert list(BlockRows(data)) == [change_of(row) for row in rows]
    for row in rows:
        rewrite(row)


def assert_malformed(data: bytes) -> None:
    """Bytes that are not rows are an error, at an offset within them."""
    try:
        BlockRows(data)
    except ValueError as error:
        _, _, place = str(error).partition(" at ")
        assert 0 <= int(place.split()[0]) <= len(data)
    else:
        raise AssertionError("these bytes are rows")


def rewrite(row: Row) -> None:
    """A decoded row is encoded and decoded as the same row."""
    if row.type == RowType.UPDATE and row.space_id is None:
        return  # without following bytes it is none
    if row.replica_id >= 2**32 or row.type > 127 or row.lsn >= 2**64:
        return
    assert repr(decode_rows(encode_row(row))) == repr([row])


def _seed(*requests: tuple[int, bytes], lsn: int = 1, member: int = 1) -> bytes:
    return RowEncoder(member).transaction(lsn, TIME, requests)


_INSERT: Final = (RowType.INSERT, insert_body(512, b"\x92\1\xa1R"))
_UPDATE: Final = (RowType.UPDATE, update_body(512, b"\x91\1", b"\x91\x93\xa1=\1\xa1T"))

TARGET: Final = Target(
    check,
    [
        _seed(_INSERT),
        _seed(_INSERT, (RowType.REPLACE, insert_body(280, b"\x92\1\xa1R")), lsn=100_000),
        _seed(_UPDATE, (RowType.UPDATE, update_body(3, b"\x91\1", b"\x90", index_base=1)), lsn=300),
        _seed(*((RowType.DELETE, delete_body(512, b"\x91\1", index_id)) for index_id in (0, 1))),
        _seed((RowType.UPSERT, upsert_body(70_000, b"\x92\1\2", b"\x91\x93\xa1+\1\1"))),
        _seed((RowType.NOP, b""), member=3),
        _seed(_INSERT) + _seed(_UPDATE, lsn=2**40),
        encode_row(Row(RowType.INSERT, 0, 272, b"\x91\1", body=insert_body(272, b"\x91\1"), tsn=0)),
        encode_row(Row(RowType.CONFIRM, 9, body=b"\x82\2\1\3\5", flags=RowFlag.COMMIT | RowFlag.WAIT_SYNC)),
    ],
    {
        "a third key in an UPDATE that is longer than a byte": bytes.fromhex(
            "850004020103cd012c04cb41d7d7840020000008008310cd020020918129d784002000000801090184100315"
            "012091012190d784002000000801090184100315012091012190"
        ),
        "a header with two types": bytes.fromhex("8400020201f9010004821000219201a152"),
        "a header at the end that is shorter than its beginning promises": bytes.fromhex(
            "850004020103cd012c04cb41d7317bff9f000008008310cd020020918129d784000020000008019f09018500"
            "04020103cd7b15012091012190"
        ),
    },
)
