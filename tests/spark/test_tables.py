"""Tables in Spark's catalog, temporary views and INSERT INTO: SQL alone, as analysts use it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import tarantool
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.table_options import (
    PASSWORD,
    options_of_new_table,
    recall,
    remember,
    with_password,
)
from tests.conftest import StartServer
from tests.running_server import RunningServer
from tests.spark.sink import application
from tests.storage.databases import jobs_box, save


@pytest.fixture
def data(tmp_path: Path) -> Path:
    save(jobs_box([1, "taken"], [2, "ready"], [3, "ready"]), tmp_path, {})
    return tmp_path


@pytest.fixture(autouse=True)
def _dropped(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tables of one test are not there for the next."""
    yield
    if "spark" in request.fixturenames:
        session: SparkSession = request.getfixturevalue("spark")
        for name in ("jobs", "things", "copied"):
            session.sql(f"DROP TABLE IF EXISTS {name}")


def rows(session: SparkSession, query: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in session.sql(query).collect()]


class TestReading:
    def test_a_table_is_a_space(self, spark: SparkSession, data: Path) -> None:
        spark.sql(f"CREATE TABLE jobs USING tarantool OPTIONS (path '{data}', space 'jobs')")
        query = "SELECT status, count(*) FROM jobs GROUP BY status ORDER BY status"
        assert rows(spark, query) == [("ready", 2), ("taken", 1)]
        assert rows(spark, "SELECT id FROM jobs WHERE status = 'taken'") == [(1,)]

    def test_a_table_may_be_read_in_another_mode(self, spark: SparkSession, data: Path) -> None:
        spark.sql(f"CREATE TABLE jobs USING tarantool OPTIONS (path '{data}', space 'jobs')")
        assert len(rows(spark, "SELECT * FROM jobs WITH (mode = 'snapshot')")) == 3

    def test_a_location_is_a_path(self, spark: SparkSession, data: Path) -> None:
        spark.sql(f"CREATE TABLE jobs USING tarantool OPTIONS (space 'jobs') COMMENT 'x' LOCATION '{data}'")
        assert len(rows(spark, "SELECT * FROM jobs")) == 3

    def test_a_dropped_table_leaves_the_files_alone(self, spark: SparkSession, data: Path) -> None:
        before = {file.name: file.read_bytes() for file in data.iterdir()}
        spark.sql(f"CREATE TABLE jobs USING tarantool OPTIONS (path '{data}', space 'jobs')")
        spark.sql("DROP TABLE jobs")
        assert {file.name: file.read_bytes() for file in data.iterdir()} == before

    def test_temporary_views(self, spark: SparkSession, data: Path) -> None:
        options = f"OPTIONS (path '{data}', space 'jobs', mode 'changes')"
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW history USING tarantool {options}")
        assert len(rows(spark, "SELECT lsn, after.id FROM history")) == 0, "the rows are in a snapshot"
        spark.catalog.dropTempView("history")

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ("path '{data}', space 'nosuch'", "there is no space 'nosuch'"),
            ("path '{data}', space 'jobs', colour 'red'", 'there is no option "colour"'),
            ("url 'ann:secret@127.0.0.1:1', space 'jobs'", "it must not contain a password"),
        ],
    )
    def test_what_is_no_table_is_refused(
        self, spark: SparkSession, data: Path, options: str, sentence: str
    ) -> None:
        with pytest.raises(PySparkException, match=sentence) as caught:
            spark.sql(f"CREATE TABLE jobs USING tarantool OPTIONS ({options.format(data=data)})")
        assert "secret" not in str(caught.value)
        assert not spark.catalog.tableExists("jobs")

    def test_a_table_with_columns_of_its_own_has_no_options(self, spark: SparkSession, data: Path) -> None:
        """Spark does not ask for the columns, so there is nothing to store the options with."""
        options = f"OPTIONS (path '{data}', space 'jobs')"
        spark.sql(f"CREATE TABLE jobs (id bigint) USING tarantool {options}")
        with pytest.raises(PySparkException, match="create the table without a list of columns"):
            spark.sql("SELECT * FROM jobs").collect()


class TestInserting:
    @pytest.fixture
    def server(self, start_server: StartServer) -> RunningServer:
        return start_server(["tests.spark.sink.application:app"])

    @pytest.fixture
    def table(self, spark: SparkSession, server: RunningServer, tmp_path: Path) -> str:
        """A table that is the space `things` of a server."""
        secret = tmp_path / "password"
        secret.write_text(application.PASSWORD + "\n")
        url = f"{application.USER}@{server.host}:{server.port}"
        options = f"OPTIONS (url '{url}', space 'things', password_file '{secret}')"
        spark.sql(f"CREATE TABLE things USING tarantool {options}")
        return "things"

    def test_into_a_servers_space(
        self, spark: SparkSession, server: RunningServer, table: str, data: Path
    ) -> None:
        spark.sql(f"INSERT INTO {table} (id, name, price) VALUES (1, 'one', 1.50), (2, NULL, NULL)")
        spark.sql(f"CREATE TABLE jobs USING tarantool OPTIONS (path '{data}', space 'jobs')")
        spark.sql(f"INSERT INTO {table} (id, name) SELECT id, status FROM jobs WHERE id > 1")
        client = tarantool.Connection(server.host, server.port)
        stored = client.select("things").data
        client.close()
        assert [row[:2] for row in stored] == [[1, "one"], [2, "ready"], [3, "ready"]]

    def test_overwriting_is_refused(self, spark: SparkSession, table: str) -> None:
        with pytest.raises(PySparkException, match="data on a server is not overwritten"):
            spark.sql(f"INSERT OVERWRITE {table} (id) VALUES (1)")

    def test_the_catalog_has_no_password(self, spark: SparkSession, table: str) -> None:
        told = json.dumps([row.asDict() for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect()])
        told += spark.sql(f"SHOW CREATE TABLE {table}").collect()[0][0] + spark.table(table).schema.json()
        assert application.PASSWORD not in told
        assert "password_file" in told

    def test_rows_of_a_table_go_where_the_writer_says(
        self, spark: SparkSession, server: RunningServer, data: Path, tmp_path: Path
    ) -> None:
        """Columns of a table carry its options; they count for that table alone."""
        spark.sql(f"CREATE TABLE jobs USING tarantool OPTIONS (path '{data}', space 'jobs')")
        target = tmp_path / "copy"
        writer = spark.table("jobs").write.format("tarantool").option("space", "copied").mode("append")
        writer.save(str(target))
        assert spark.read.format("tarantool").option("space", "copied").load(str(target)).count() == 3


COLUMNS = StructType([StructField("id", LongType(), True, {"note": "kept"}), StructField("x", LongType())])
TABLE = {"path": "file:/data", "space": "jobs"}


class TestOptions:
    def test_sparks_properties_are_no_options(self) -> None:
        given = {
            "path": "file:/data",
            "location": "file:/data",
            "space": "jobs",
            "option.space": "jobs",
            "owner": "root",
            "provider": "tarantool",
            "comment": "all jobs",
        }
        assert options_of_new_table(given) == TABLE

    def test_they_travel_with_the_first_column(self) -> None:
        columns = remember(COLUMNS, TABLE)
        assert recall({}, columns) == recall({}, columns, writing=True) == TABLE
        assert recall({"Mode": "snapshot"}, columns) == {**TABLE, "mode": "snapshot"}
        assert columns["id"].metadata["note"] == "kept"
        assert recall({"space": "jobs"}, COLUMNS) == {"space": "jobs"}
        with pytest.raises(SourceError, match="there are no options"):
            recall({}, COLUMNS)

    @pytest.mark.parametrize("given", [{"path": "/other"}, {"url": "3301"}, {"paths": "[]"}])
    def test_a_place_that_is_given_counts(self, given: dict[str, str]) -> None:
        assert recall(given, remember(COLUMNS, TABLE)) == given

    def test_a_writer_with_options_has_those_alone(self) -> None:
        given = {"space": "other"}
        assert recall(given, remember(COLUMNS, TABLE), writing=True) == given

    @pytest.mark.parametrize("url", ["ann:secret@127.0.0.1:1", "ann:@unix:/x"])
    def test_no_password_is_stored(self, url: str) -> None:
        with pytest.raises(SourceError, match="must not contain a password"):
            options_of_new_table({"provider": "tarantool", "url": url, "option.url": url})

    def test_the_password_comes_from_a_file_or_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "password"
        file.write_text("s3:c@ret\n")
        url = {"url": "ann@127.0.0.1:3301"}
        assert with_password({**url, "password_file": str(file)}) == {"url": "ann:s3:c@ret@127.0.0.1:3301"}
        assert with_password(url) == url
        monkeypatch.setenv(PASSWORD, "other")
        assert with_password(url) == {"url": "ann:other@127.0.0.1:3301"}
        assert with_password({"url": "127.0.0.1:3301"}) == {"url": "127.0.0.1:3301"}
        assert with_password({"url": "ann:own@127.0.0.1:3301"}) == {"url": "ann:own@127.0.0.1:3301"}

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"url": "ann@127.0.0.1:3301", "password_file": "/nosuch"}, "/nosuch: .*No such file"),
            ({"url": "127.0.0.1:3301", "password_file": "x"}, "the URL names no user"),
            ({"url": "ann:own@127.0.0.1:3301", "password_file": "x"}, "the URL has a password already"),
        ],
    )
    def test_a_wrong_password_file(self, options: dict[str, str], sentence: str) -> None:
        with pytest.raises(SourceError, match=f'^the option "password_file".*{sentence}'):
            with_password(options)
