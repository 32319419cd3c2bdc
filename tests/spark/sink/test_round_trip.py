"""What `spark.read` shows can be written back, and is as it was."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from uuid import UUID

from pyspark.sql import SparkSession

from iproto_server.codec import msgpack as codec
from tests.conftest import StartServer
from tests.iproto_client import REPLACE, IprotoClient

_APPLICATION = "tests.spark.sink.application:app"

_ROWS = (
    [1, "ä", Decimal("1.50"), UUID(int=1), 0.5, -3, True, {"a": [1, None, "x"]}, {"k": 2}],
    [2**64 - 1, "", Decimal(10**30), None, -0.0, 2**63, False, "text", {}],
    [3, "b\udcff", Decimal("-0.000"), UUID(int=2**128 - 1), 1e300, -(2**63), None, 2**64 - 1, None],
    [4, None, None, None, None, None, None, [], None, "extra", [5]],
    [5, None, None, None, None, None, None, Decimal("123456789.123456789123"), None],
)


def test_rows_of_a_server_are_written_to_another_and_into_a_snapshot(
    spark: SparkSession, start_server: StartServer, tmp_path: Path
) -> None:
    """Byte for byte, whatever their types, with the fields that the format does not name."""
    directory, loaded = tmp_path / "first", tmp_path / "loaded"
    directory.mkdir()
    first, second = start_server([_APPLICATION], work_dir=directory), start_server([_APPLICATION])
    with IprotoClient(first.host, first.port) as client:
        space = client.space_id("things")
        for row in _ROWS:
            body = b"\x82\x10" + codec.pack(space) + b"\x21" + codec.pack(row)
            assert client.request(REPLACE, body).ok
        assert client.call("box.snapshot").ok
        original = client.everything(space).raw_body
    table = spark.read.format("tarantool").options(mode="snapshot", space="things").load(str(directory))
    table.write.format("tarantool").mode("append").options(url=second.address, space="things").save()
    table.write.format("tarantool").mode("append").options(space="things", template=str(directory)).save(
        str(loaded)
    )
    third = start_server([], work_dir=loaded)
    for server in (second, third):
        with IprotoClient(server.host, server.port) as client:
            assert client.everything(space).raw_body == original
