"""Contents that cannot move: the error names them, and the directory stays unchanged."""

from __future__ import annotations

import shutil
from uuid import UUID

import pytest

from iproto_server.box.catalog.foreign.advice import UNSERVED
from tests.command_line import refused
from tests.interchange.database.home import DIRECTIONS, OURS, TARANTOOL, Home, Server
from tests.interchange.database.statements import call, create_index, create_space, insert, snapshot

OTHER_INSTANCE = UUID(int=0x1234567890ABCDEF1234567890ABCDEF)

UNSUPPORTED = {
    "an RTREE index": (
        "s:create_index('place', {type = 'rtree', unique = false, parts = {{2, 'array'}}})",
        "index 'place' of space 'things': This server does not support RTREE indexes",
    ),
    "a BITSET index": (
        "s:create_index('bits', {type = 'bitset', unique = false, parts = {{2, 'unsigned'}}})",
        "index 'bits' of space 'things': This server does not support BITSET indexes",
    ),
    "a functional index": (
        "box.schema.func.create('f', {body = 'function(t) return {t[1]} end', is_deterministic = true,"
        " is_sandboxed = true}) s:create_index('computed', {func = 'f', parts = {{1, 'unsigned'}}})",
        "index 'computed' of space 'things': This server does not support functional indexes",
    ),
    "a vinyl space": (
        "box.schema.create_space('on_disk', {engine = 'vinyl'})",
        "space 'on_disk': Space engine 'vinyl' does not exist",
    ),
    "a blackhole": (
        "box.schema.create_space('nowhere', {engine = 'blackhole'})",
        "space 'nowhere': Space engine 'blackhole' does not exist",
    ),
    "a synchronous space": (
        "box.schema.create_space('agreed', {is_sync = true})",
        "space 'agreed': This server does not support synchronous spaces",
    ),
    "an SQL view": (
        "box.execute('CREATE TABLE t (id INT PRIMARY KEY)') box.execute('CREATE VIEW v AS SELECT * FROM t')",
        "space 'V': This server does not support SQL views",
    ),
}

KEPT_WITHOUT_EFFECT = {
    "_ck_constraint": "s:format({{'id', 'unsigned'}}) s:create_check_constraint('positive', '\"id\" > 5')",
    "_fk_constraint": (
        "box.execute('CREATE TABLE t (id INT PRIMARY KEY)')"
        " box.execute('CREATE TABLE u (id INT PRIMARY KEY REFERENCES t (id))')"
    ),
    "_trigger": (
        "box.execute('CREATE TABLE t (id INT PRIMARY KEY)')"
        " box.execute('CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW BEGIN DELETE FROM t; END')"
    ),
}

THINGS = "local s = box.schema.create_space('things')\ns:create_index('pk')\n"


def assert_refused(home: Home, file: str, reason: str) -> None:
    """Start our server in a copy of the directory that is in use; the copy must stay unchanged."""
    copy = Home(home.directory.with_name("copy"))
    shutil.copytree(home.directory, copy.directory)
    before = copy.files()
    words = refused(copy.directory)
    assert words.startswith(f"{copy.directory}/")
    assert file in words
    assert words.endswith(f" {reason}; {UNSERVED}")
    assert copy.files() == before
    shutil.rmtree(copy.directory)


class TestWhatOursHasNot:
    @pytest.mark.parametrize("what", UNSUPPORTED)
    def test_stops_the_start_by_name(self, home: Home, what: str) -> None:
        lua, reason = UNSUPPORTED[what]
        with home.of(TARANTOOL, lua=THINGS + lua) as inhabitant:
            assert_refused(home, ".xlog, block at offset ", reason)
            inhabitant.do([snapshot()])
            assert_refused(home, ".snap: ", reason)

    @pytest.mark.parametrize("space", KEPT_WITHOUT_EFFECT)
    def test_or_is_kept_and_said(self, home: Home, space: str) -> None:
        """Lua functions that an application needs do not work here, and work again in Tarantool."""
        with home.of(TARANTOOL, lua=THINGS + KEPT_WITHOUT_EFFECT[space]) as inhabitant:
            kept = inhabitant.contents()
            inhabitant.kill()
        with home.of(OURS) as inhabitant:
            inhabitant.process.wait_for(f"the rows of {space} are kept but have no effect in this server")
            inhabitant.do([create_space(800, "more"), create_index("more", "pk", (1, "unsigned"))])
        with home.of(TARANTOOL) as inhabitant:
            assert inhabitant.contents().of(f"{space}.primary") == kept.of(f"{space}.primary") != []

    @pytest.mark.parametrize("space", KEPT_WITHOUT_EFFECT)
    def test_and_goes_with_the_space_that_it_is_about(self, home: Home, space: str) -> None:
        """Tarantool refuses a log that drops a space without its constraints."""
        with home.of(TARANTOOL, lua=THINGS + KEPT_WITHOUT_EFFECT[space]) as inhabitant:
            spaces = [row[2] for row in inhabitant.client.everything(280).data if row[0] > 511]
        with home.of(OURS) as inhabitant:
            inhabitant.do([call(f"box.space.{name}:drop") for name in reversed(spaces)])
            inhabitant.kill()
        with home.of(TARANTOOL) as inhabitant:
            contents = inhabitant.contents()
            assert contents.of(f"{space}.primary") == []
            assert contents.sizes == {}


class TestDirectories:
    @pytest.mark.parametrize("first", DIRECTIONS, ids=lambda who: f"from-{who}")
    def test_of_another_instance_are_refused(self, home: Home, first: Server) -> None:
        with home.of(first) as inhabitant:
            inhabitant.do([create_space(800, "things")])
            uuid = inhabitant.contents().position["uuid"]
        before = home.files()
        mismatch = f"Instance UUID mismatch: expected {OTHER_INSTANCE}, got {uuid}"
        if first is TARANTOOL:
            assert mismatch in refused(home.directory, "--instance-uuid", OTHER_INSTANCE)
        else:
            with (
                pytest.raises(AssertionError, match=mismatch),
                home.of(TARANTOOL, instance_uuid=str(OTHER_INSTANCE)),
            ):
                pass
        assert home.files() == before
        with home.of(first.other, instance_uuid=uuid) as inhabitant:
            assert inhabitant.contents().position["uuid"] == uuid

    def test_in_use_are_refused(self, home: Home) -> None:
        with home.of(TARANTOOL):
            words = refused(home.directory)
            assert str(home.directory) in words
            assert "use" in words
        with (
            home.of(OURS) as inhabitant,
            pytest.raises(AssertionError, match="Failed to lock WAL directory"),
            home.of(TARANTOOL),
        ):
            pass
        assert not inhabitant.process.running


def test_what_is_inserted_meanwhile_is_not_lost(home: Home) -> None:
    """A refused server changes no files of the running one."""
    with home.of(OURS) as inhabitant:
        inhabitant.do([create_space(800, "things"), create_index("things", "pk", (1, "unsigned"))])
        with pytest.raises(AssertionError, match="Failed to lock WAL directory"), home.of(TARANTOOL):
            pass
        inhabitant.do([insert(800, 1)])
        inhabitant.kill()
    with home.of(TARANTOOL) as inhabitant:
        assert inhabitant.contents().of("things.pk") == [b"\x91\x01"]
