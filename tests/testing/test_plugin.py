"""The plugin for pytest, as a test suite of somebody else's uses it."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from tests.programs import REPOSITORY


def passes(suite: pytest.Pytester, source: str, **outcomes: int) -> pytest.RunResult:
    """Run tests that pass, or come out as said."""
    suite.makepyfile(test_suite=source)
    result = suite.runpytest()
    result.assert_outcomes(**(outcomes or {"passed": 1}))
    return result


def refuses(suite: pytest.Pytester, source: str, *lines: str) -> None:
    """Run a test that ends in an error that says so."""
    result = passes(suite, source, errors=1)
    result.stdout.fnmatch_lines([f"*{line}*" for line in lines])


class TestFoundByPytest:
    def test_through_an_entry_point_of_the_name_that_pytest_plugins_gives_it(self) -> None:
        # under another name pytest would refuse to load it a second time
        project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["entry-points"]["pytest11"] == {"iproto_server.testing": "iproto_server.testing"}

    def test_importing_nothing_large_before_it_is_used(self) -> None:
        code = "import sys, iproto_server.testing; print(*sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
        )
        loaded = set(done.stdout.split())
        assert "iproto_server.testing.server" in loaded
        assert not loaded & {"tarantool", "msgpack", "BTrees", "uvloop", "yaml", "click", "iproto_server.box"}

    def test_with_its_marker(self, suite: pytest.Pytester) -> None:
        suite.runpytest("--markers").stdout.fnmatch_lines(
            ["@pytest.mark.iproto_server(apps=*, ?*options): *"]
        )


class TestServer:
    def test_runs_without_applications(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            def test_it(iproto_server):
                assert iproto_server.running
                assert iproto_server.host == "127.0.0.1"
                assert iproto_server.address == f"127.0.0.1:{iproto_server.port}"
                assert iproto_server.connect().ping(notime=True)
            """,
        )

    def test_has_the_applications_of_the_marker(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            import pytest

            @pytest.mark.iproto_server(apps=["numbers_app:app", "queue_lua_compat.tutorial:app"])
            def test_it(iproto_server):
                connection = iproto_server.connect()
                assert connection.call("numbers.add", 7).data == [[7]]
                assert connection.call("queue.take", 0).data == []
            """,
        )

    def test_has_a_lua_application(self, suite: pytest.Pytester) -> None:
        suite.makefile(
            ".lua",
            init="box.cfg{} function double(x) return 2 * x end box.schema.user.grant('guest', 'super')",
        )
        passes(
            suite,
            """
            import pathlib
            import pytest

            @pytest.mark.iproto_server(apps=["init.lua"])
            def test_it(iproto_server):
                assert iproto_server.connect().call("double", 4).data == [8]

            @pytest.mark.iproto_server(apps=pathlib.Path(__file__).with_name("init.lua"))
            def test_its_path(iproto_server):
                assert iproto_server.connect().eval("return double(...)", 5).data == [10]
            """,
            passed=2,
        )

    def test_has_the_applications_of_the_fixture(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            import pytest

            @pytest.fixture(scope="module")
            def iproto_server_apps():
                return ["numbers_app:app"]

            def test_it(iproto_server):
                assert iproto_server.connect().call("numbers.add", 7).data == [[7]]
            """,
        )

    def test_is_a_new_and_empty_one_for_each_test(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            import pytest

            pytestmark = pytest.mark.iproto_server(apps="numbers_app:app")

            @pytest.mark.parametrize("number", [1, 2])
            def test_it(iproto_server, number):
                assert list(iproto_server.work_dir.glob("*.snap"))
                assert iproto_server.connect().call("numbers.add", number).data == [[number]]
            """,
            passed=2,
        )

    def test_has_the_options_of_marker_and_fixture_the_nearest_winning(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            import pytest

            pytestmark = pytest.mark.iproto_server(wal_mode="none", net_msg_max=10)

            @pytest.fixture
            def iproto_server_options():
                return {"wal_mode": "fsync", "read_only": True}

            @pytest.mark.iproto_server(net_msg_max=20)
            def test_it(iproto_server):
                [info] = iproto_server.connect().call("box.info").data
                assert info["ro"]
                assert not list(iproto_server.work_dir.glob("*.xlog"))
            """,
        )

    def test_listens_where_it_is_told(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            import pytest

            @pytest.mark.iproto_server(listen=["unix:jobs.sock", "127.0.0.1:0"], log_format="json")
            def test_it(iproto_server):
                assert iproto_server.address == f"unix:{iproto_server.work_dir}/jobs.sock"
                assert (iproto_server.host, iproto_server.port) == ("unix", 0)
                assert iproto_server.connect().ping(notime=True)
            """,
        )

    def test_does_not_hear_of_the_users_own_settings(
        self, suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("IPROTO_SERVER_WAL_MODE", "never")
        monkeypatch.setenv("IPROTO_SERVER_CONFIG", "/nowhere.toml")
        passes(suite, "def test_it(iproto_server): assert iproto_server.running")

    def test_closes_connections_and_ends_with_the_test(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            import pytest

            kept = []

            def test_it(iproto_server):
                kept.append((iproto_server, iproto_server.connect()))

            def test_afterwards():
                [(server, connection)] = kept
                assert not server.running
                assert connection.is_closed()
            """,
            passed=2,
        )


class TestFactory:
    def test_starts_several_with_what_each_is_given(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            import pytest

            @pytest.mark.iproto_server(apps=["numbers_app:app"], wal_mode="none")
            def test_it(start_iproto_server, tmp_path):
                first = start_iproto_server()
                second = start_iproto_server([], read_only=True, work_dir=tmp_path / "new")
                assert first.address != second.address
                assert first.connect().call("numbers.add", 7).data == [[7]]
                assert second.connect().call("box.info").data[0]["ro"]
                assert second.work_dir == tmp_path / "new"
                assert not list(second.work_dir.glob("*.xlog"))
            """,
        )

    def test_gives_the_server_environment_variables(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            def test_it(start_iproto_server):
                server = start_iproto_server(environment={"IPROTO_SERVER_READ_ONLY": "true"})
                assert server.connect().call("box.info").data[0]["ro"]
            """,
        )

    def test_errors_are_raised_where_it_is_called(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            import pytest
            from iproto_server.testing import ServerFailed

            def test_it(start_iproto_server):
                with pytest.raises(ServerFailed, match="Address already in use"):
                    start_iproto_server(listen=start_iproto_server().address)
            """,
        )

    def test_a_server_for_a_whole_module_is_a_fixture_of_five_lines(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            import pytest
            from iproto_server.testing import IprotoServer

            @pytest.fixture(scope="module")
            def numbers(tmp_path_factory):
                directory = tmp_path_factory.mktemp("numbers")
                with IprotoServer(directory, ["numbers_app:app"], wal_mode="none") as server:
                    yield server

            @pytest.fixture(autouse=True)
            def empty(numbers):
                numbers.connect().call("box.space.numbers:truncate")

            @pytest.mark.parametrize("number", [1, 2])
            def test_it(numbers, number):
                assert numbers.connect().call("numbers.add", number).data == [[number]]
            """,
            passed=2,
        )


class TestStartingAgain:
    @pytest.mark.parametrize(
        "end", ["restart()", "stop(); iproto_server.start()", "kill(); iproto_server.restart()"]
    )
    def test_keeps_directory_and_address(self, suite: pytest.Pytester, end: str) -> None:
        passes(
            suite,
            f"""
            import pytest

            @pytest.mark.iproto_server(apps=["numbers_app:app"])
            def test_it(iproto_server):
                connection = iproto_server.connect()
                connection.call("numbers.add", 7)
                address, pid = iproto_server.address, iproto_server.pid
                iproto_server.{end}
                assert (iproto_server.address, iproto_server.pid != pid) == (address, True)
                assert connection.call("numbers.add", 8).data == [[7, 8]]
                assert "adding 7" in iproto_server.log
                assert "adding 8" in iproto_server.log
            """,
        )

    def test_one_that_was_stopped_stays_stopped(self, suite: pytest.Pytester) -> None:
        passes(
            suite,
            """
            def test_it(iproto_server):
                iproto_server.stop()
                iproto_server.stop()
                assert not iproto_server.running
                assert "stopped" in iproto_server.log
            """,
        )


class TestFailures:
    def test_show_the_log(self, suite: pytest.Pytester) -> None:
        result = passes(
            suite,
            """
            import pytest

            @pytest.mark.iproto_server(apps=["numbers_app:app"])
            def test_it(iproto_server):
                iproto_server.connect().call("numbers.add", 4711)
                assert False
            """,
            failed=1,
        )
        result.stdout.fnmatch_lines(["*log of iproto-server on 127.0.0.1:*", "*listening on*", "adding 4711"])

    def test_a_server_that_ended_by_itself_is_an_error(self, suite: pytest.Pytester) -> None:
        result = passes(
            suite,
            """
            import os, signal

            def test_it(iproto_server):
                os.kill(iproto_server.pid, signal.SIGKILL)
                iproto_server._serving.process.wait()
            """,
            passed=1,
            errors=1,
        )
        result.stdout.fnmatch_lines(
            ["*iproto-server ended by itself with exit status -9; the last it wrote:*", "*listening on*"]
        )

    def test_an_application_that_is_not_there(self, suite: pytest.Pytester) -> None:
        refuses(
            suite,
            """
            import pytest

            @pytest.mark.iproto_server(apps=["nowhere:app"])
            def test_it(iproto_server): pass
            """,
            "iproto-server did not start (exit status 1); the last it wrote:",
            'cannot import "nowhere:app": there is no module "nowhere"',
        )

    def test_an_application_that_is_an_object(self, suite: pytest.Pytester) -> None:
        refuses(
            suite,
            """
            import pytest
            from numbers_app import app

            @pytest.mark.iproto_server(apps=[app])
            def test_it(iproto_server): pass
            """,
            'an application is a string, "module:attribute", or the path of a Lua file, not of type App',
        )

    def test_applications_whose_setup_fails(self, suite: pytest.Pytester) -> None:
        suite.makepyfile(
            broken_app="""
            from iproto_server import Application, BoxError

            app = Application("broken")

            @app.setup
            def fail(box):
                raise BoxError.procedure("no room")
            """
        )
        refuses(
            suite,
            """
            import pytest

            @pytest.mark.iproto_server(apps=["broken_app:app"])
            def test_it(iproto_server): pass
            """,
            "did not start (exit status 1)",
            "setup failed: no room",
        )

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ('wal_modus="none"', 'there is no option "wal_modus", did you mean "wal_mode"?'),
            ("colour=1", 'there is no option "colour"'),
            ('log_level="error"', "with log_level='error' the server does not say when it listens"),
            ('wal_mode="never"', 'unknown wal mode "never": choose none, write or fsync'),
            ("net_msg_max=1", "--net-msg-max:"),
        ],
    )
    def test_a_wrong_option(self, suite: pytest.Pytester, option: str, message: str) -> None:
        refuses(
            suite,
            f"""
            import pytest

            @pytest.mark.iproto_server({option})
            def test_it(iproto_server): pass
            """,
            message,
        )

    def test_a_marker_without_keywords(self, suite: pytest.Pytester) -> None:
        refuses(
            suite,
            """
            import pytest

            @pytest.mark.iproto_server("numbers_app:app")
            def test_it(iproto_server): pass
            """,
            "@pytest.mark.iproto_server takes keywords: apps=[[]...], and options; not 'numbers_app:app'",
        )
