"""Bad input of the operators' commands, and servers that do not answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.command_line import run
from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer
from tests.tools.test_operator_commands import lines

TUBES = "queue_lua_compat.tubes:app"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("tubes"), [TUBES], ["--guest", "all"]) as running:
        with IprotoClient.at(running.address) as client:
            assert client.call("queue.create_tube", "jobs", "fifottl").ok
        yield running


@pytest.fixture
def uri(server: RunningServer) -> str:
    return server.address


class TestBadJson:
    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ('{"dealy": 1', "Expecting ',' delimiter"),
            ("[1, 2", "Expecting ',' delimiter"),
            ('"a', "Unterminated string"),
            ("{dealy: 1}", "Expecting property name"),
            (" {'a': 1}", "Expecting property name"),
            ('{"a": 1, "a": 2}', "a name occurs twice"),
            ('{"a": NaN}', "NaN is no number of JSON"),
            ("1e999", "the number 1e999 is too large"),
            ('"\\ud800"', "half of a surrogate pair"),
            ("[" * 100_000, "too many lists"),
        ],
    )
    def test_an_argument_that_is_broken_is_refused(self, text: str, problem: str) -> None:
        nowhere = "127.0.0.1:1"  # nothing is sent, so no server is needed
        for arguments in (
            ("call", nowhere, "queue.put", "x", text),
            ("configure", nowhere, "jobs", f"retry={text}"),
            ("schedule", nowhere, "nightly", "jobs", "* * * * *", text),
            ("schedule", nowhere, "nightly", "jobs", "* * * * *", "x", "--options", text),
        ):
            outcome = run(*arguments)
            assert outcome.status == 2, outcome
            assert problem in " ".join(outcome.errors)
            assert len(" ".join(outcome.errors)) < 1500

    @pytest.mark.parametrize("text", ["plain", "0123", "1.", "NaN", "Infinity", "-", "", "12ab", "'{'", "ж"])
    def test_what_does_not_look_like_json_is_a_string(self, uri: str, text: str) -> None:
        assert lines(run("call", uri, "queue.tube.jobs:put", "--", text))[0][2] == text
