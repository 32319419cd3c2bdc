"""What people do in the dashboard."""

from __future__ import annotations

from tests.iproto_client import IprotoClient
from tests.server.http.browser.browser import Browser
from tests.server.http.dashboard_application import PASSWORD

TUBE = "mail/outgoing ж"


def log_in(browser: Browser, site: str, user: str, password: str = PASSWORD) -> None:
    browser.command("Network.clearBrowserCookies")
    browser.open("about:blank")
    browser.open(site)
    browser.write("input[name=user]", user)
    browser.write("input[name=password]", password)
    browser.click("form button")


def put(client: IprotoClient, count: int) -> None:
    for number in range(count):
        assert client.call(f"queue.tube.{TUBE}:put", {"to": f"ann{number}@example.com", "n": number}).ok


def open_tube(browser: Browser) -> None:
    browser.click("#queues tbody a")
    browser.wait_for_text("main h2", TUBE)
    browser.find("#state")
