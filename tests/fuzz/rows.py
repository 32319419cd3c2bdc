"""The rows of a block: fast and general decoding, of whole rows or of changes only, agree."""

from __future__ import annotations

from typing import Final

from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import (
    Row,
    RowEncoder,
    RowFlag,
    RowType,
    decode_rows,
    decode_tuples,
    decoder,
    encode_row,
)
from iproto_server.storage.xlog.decoder import change_of, decode_changes
from iproto_server.storage.xlog.encoder import delete_body, insert_body, update_body, upsert_body
from tests.fuzz.target import Target

TIME: Final = 1_600_000_000.5
GOOD: Final = RowEncoder().transaction(7, TIME, [(RowType.INSERT, insert_body(512, b"\x91\1"))])


def forget_shapes() -> None:
    """Use general decoding for everything."""
    for shapes in (decoder._header_shapes, decoder._body_shapes, decoder._update_shapes):
        shapes.clear()


def rows_of(payload: bytes) -> list[Row] | None:
    """Decode the rows; None if they cannot be decoded."""
    try:
        return decode_rows(payload)
    except ValueError:
        return None


def check(data: bytes) -> None:
    if codec.ENDLESS_HEAD in data:
        return  # no writer produces that, and detecting it in all files would take too long
    forget_shapes()
    tuples = decode_tuples(data)
    assert decode_changes(data) in (None, [])
    careful = rows_of(data)
    # Compared by their representations, as a NaN time does not equal itself.
    assert repr(careful) == repr(rows_of(data))
    assert decode_rows(GOOD)[0].lsn == 7
    changes = decode_changes(data)
    if changes:
        assert careful is not None
        assert changes == [change_of(row) for row in careful]
        assert careful[-1].is_last
    again = decode_tuples(data)
    assert tuples is None or again == tuples
    if careful is None:
        return
    # Only the beginnings of tuples' headers are checked, so there may be tuples that are no rows,
    # or whose header has a second type.
    if again is not None and all(row.type == RowType.INSERT for row in careful):
        assert again == [(row.space_id, row.tuple_raw) for row in careful]
    for row in careful:
        rewrite(row)


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
