"""The dashboard in a real browser: schedules, rights, other origins and the size of pages."""

from __future__ import annotations

import os
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.http.browser.browser import Browser
from tests.server.http.browser.dashboard import TUBE, log_in, open_tube, put
from tests.server.http.http_client import HTTP, http_port

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_schedules(browser: Browser, site: str, queue: IprotoClient) -> None:
    log_in(browser, site, "operator")
    browser.click("#to-schedules")
    browser.wait_for_text("main", "There are no schedules.")
    browser.click("#new")
    browser.write("#schedule input[name=name]", "nightly/report")
    browser.write("#schedule input[name=queue]", TUBE)
    browser.write("#schedule input[name=cron]", "61 2 1 1 *")
    browser.write("#schedule textarea", '{"kind": "report"}')
    browser.write("#schedule input[name=options]", '{"pri": 3}')
    browser.click("#schedule button.main")
    browser.wait_for_text("#schedule [role=alert]", "has a bad minute")
    browser.run("document.querySelector('#schedule input[name=cron]').value = '30 2 1 1 *'")  # the rest stays
    browser.click("#schedule button.main")
    browser.wait_for_text("#message", "The schedule nightly/report is next due at 20")
    browser.wait_for_text("#schedules", '{"kind":"report"}')
    [schedule] = queue.call("operator.schedules").data[0]
    assert (schedule["queue"], schedule["data"], schedule["options"]) == (
        TUBE,
        {"kind": "report"},
        {"pri": 3},
    )
    browser.click("#schedules [data-action=change]")
    browser.click("#schedule option[value=all]")
    browser.click("#schedule button.main")
    browser.wait_for_text("#schedules", "all")
    [changed] = queue.call("operator.schedules").data[0]
    assert changed == {**schedule, "missed": "all"}
    log_in(browser, site, "viewer")
    browser.click("#to-schedules")
    browser.find("#schedules")
    for selector in ("#new", "#schedules button"):
        assert browser.run("return document.querySelector(arguments[0])", selector) is None, selector
    log_in(browser, site, "operator")
    browser.click("#to-schedules")
    browser.click("#schedules [data-action=remove]")
    browser.wait_for_text("dialog[open]", "Remove the schedule nightly/report?")
    browser.click("#confirm")
    browser.wait_for_text("main", "There are no schedules.")


def test_who_may_only_read_is_offered_no_action(browser: Browser, site: str, queue: IprotoClient) -> None:
    put(queue, 3)
    log_in(browser, site, "viewer")
    browser.find("#queues")
    assert browser.run("return document.querySelector('#snapshot')") is None
    open_tube(browser)
    browser.find('[data-id="2"]')
    for selector in ("#put", "#kick", "#actions", "#tasks input"):
        assert browser.run("return document.querySelector(arguments[0])", selector) is None, selector
    script = """
        const done = arguments[arguments.length - 1];
        const headers = {"Content-Type": "application/json"};
        const options = {method: "POST", headers, body: '{"ids": ["1"]}'};
        fetch(`api/queues/${encodeURIComponent(arguments[0])}/delete`, options)
            .then(response => done(response.status), error => done(String(error)));
    """
    assert browser.run_async(script, TUBE) == 403
    assert queue.call("operator.task", TUBE, 1).data[0] is not None


def test_a_user_without_rights(browser: Browser, site: str) -> None:
    log_in(browser, site, "nobody")
    browser.wait_for_text("main", "may not look at queues")


def test_logging_out(browser: Browser, site: str) -> None:
    log_in(browser, site, "operator")
    browser.find("#queues")
    browser.click(".who button")
    browser.find("input[name=password]")
    browser.open(site)
    browser.find("input[name=password]")


def test_an_action_that_the_queue_lacks_is_not_offered(browser: Browser, tmp_path: Path) -> None:
    with RunningServer(tmp_path, [QUEUE_APPLICATION], HTTP) as server:
        http_port(server)
        browser.open("about:blank")
        browser.open(server.process.wait_for(r"(http://\S+#token=\S+)$")[1])
        browser.wait_for_text(".who", "guest")
        browser.click("#queues tbody a")
        browser.find("#put")
        assert browser.run("return document.querySelector('#kick')") is None
        assert browser.run(
            "return [...document.querySelectorAll('[data-action]')].map(e => e.dataset.action)"
        ) == [
            "release",
            "delete",
        ]


class _Elsewhere(BaseHTTPRequestHandler):
    """A page of another origin."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>elsewhere</title>")

    def log_message(self, format: str, *arguments: object) -> None:
        """Write nothing."""


def test_a_page_of_another_origin_changes_nothing(browser: Browser, site: str, queue: IprotoClient) -> None:
    put(queue, 1)
    log_in(browser, site, "operator")
    browser.find("#queues")
    elsewhere = ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere)
    thread = threading.Thread(target=partial(elsewhere.serve_forever, 0.05))
    thread.start()
    script = """
        const done = arguments[arguments.length - 1];
        const options = {method: "POST", mode: "no-cors", credentials: "include", body: '{"ids": ["0"]}'};
        fetch(`${arguments[0]}api/queues/${encodeURIComponent(arguments[1])}/delete`, options)
            .then(response => done(response.type), error => done("refused"));
    """
    try:
        browser.open(f"http://127.0.0.1:{elsewhere.server_address[1]}/")
        assert browser.run_async(script, site, TUBE) in ("opaque", "refused")
        embedded = "const f = document.createElement('iframe'); f.src = arguments[0]; document.body.append(f)"
        browser.run(embedded, site)
    finally:
        elsewhere.shutdown()
        thread.join()
        elsewhere.server_close()
    assert queue.call("operator.task", TUBE, 0).data[0] is not None


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit(browser: Browser, site: str, queue: IprotoClient, width: int, dark: bool) -> None:
    put(queue, 30)
    for number in range(4):
        assert queue.call(f"queue.tube.{TUBE}:bury", number).ok
    assert queue.call(f"queue.tube.{TUBE}:take", 0).ok
    colors = "dark" if dark else "light"
    browser.resize(width, dark=dark)
    schedule = {"queue": TUBE, "cron": "30 2 * * *", "data": {"kind": "report", "to": "ann@example.com"}}
    assert queue.call("operator.schedule", "nightly report", schedule).ok
    try:
        log_in(browser, site, "operator")
        browser.find(".charts canvas" if width > 700 else "#charts:not([open])")
        _fits(browser, width, f"overview-{width}-{colors}")
        open_tube(browser)
        browser.click("[data-change=pause]")
        browser.wait_for_text("#state-of-queue", "This queue is paused.")
        browser.find('[data-id="29"]')
        _fits(browser, width, f"queue-{width}-{colors}")
        browser.click("#to-queues")
        browser.click("#to-schedules")
        browser.find("#schedules")
        _fits(browser, width, f"schedules-{width}-{colors}")
        browser.click("#schedules [data-action=change]")
        browser.find("#schedule textarea")
        _fits(browser, width, f"schedule-{width}-{colors}")
    finally:
        assert queue.call("operator.resume", TUBE).ok
        assert queue.call("operator.unschedule", "nightly report").ok
        browser.resize(1280)


def _fits(browser: Browser, width: int, name: str) -> None:
    """Nothing is cut off at the side. With a directory for pictures, one is taken."""
    assert browser.run("return document.documentElement.scrollWidth") <= width
    cut = "return [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
    assert browser.run(cut) == 0
    if directory := os.environ.get("IPROTO_SERVER_PICTURES"):
        browser.picture(Path(directory) / f"{name}.png")
