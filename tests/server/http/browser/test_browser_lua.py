"""A queue that Lua code keeps, in the dashboard."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.server.http.browser.browser import Browser
from tests.server.http.browser.conftest import USERS
from tests.server.http.browser.dashboard import log_in
from tests.server.http.http_client import HTTP, http_port
from tests.server.lua.queues.conftest import GUEST, SCRIPTS, TUTORIAL, modules_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_the_tutorials_queue(browser: Browser, start_server: StartServer, tmp_path: Path) -> None:
    """Its page has the counts and the tasks, and offers the repairs that Lua code allows."""
    script = tmp_path / "init.lua"
    search = f"package.path = '{modules_of(TUTORIAL)}/?.lua;' .. package.path\n"
    script.write_text(GUEST + search + SCRIPTS[TUTORIAL])
    server = start_server([str(script), USERS], list(HTTP))
    with IprotoClient.at(server.address) as client:
        for number in range(3):
            assert client.call("queue.put", {"to": f"ann{number}@example.com"}).ok
        [task] = client.call("queue.take").data
        log_in(browser, f"http://127.0.0.1:{http_port(server)}/", "operator")
        browser.wait_for_text("#queues [data-state=ready]", "2")
        browser.click("#queues tbody a")
        browser.wait_for_text("main h2", "queue")
        browser.wait_for_text("#counts [data-state=taken]", "1")
        if directory := os.environ.get("IPROTO_SERVER_PICTURES"):
            browser.picture(Path(directory) / "lua.png")
        assert browser.run("return document.querySelectorAll('[data-change=pause]').length") == 0
        browser.run(
            "const state = document.querySelector('#state'); state.value = 'taken';"
            "state.dispatchEvent(new Event('change'))"
        )
        browser.click(f"[aria-label='Task {task['id']}']")
        browser.click("[data-action=release]")
        browser.wait_for_text("#message", "Released 1 task.")
        browser.wait_for_text("#counts [data-state=taken]", "0")
        assert client.call("queue.ack", task["id"]).failure[1].endswith("not taken by anybody")
