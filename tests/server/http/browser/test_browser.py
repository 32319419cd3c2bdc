"""Tasks and queues in the dashboard, in a real browser.

IPROTO_SERVER_PICTURES=DIRECTORY has pictures written there.
"""

from __future__ import annotations

import pytest

from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer
from tests.server.http.browser.browser import Browser
from tests.server.http.browser.dashboard import TUBE, log_in, open_tube, put

ROWS = "#tasks tbody tr"

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_wrong_password(browser: Browser, site: str) -> None:
    log_in(browser, site, "operator", "wrong")
    browser.wait_for_text("[role=alert]", "the user or the password is wrong")
    assert browser.text("#queues") == ""


def test_counts_change_under_load(browser: Browser, site: str, queue: IprotoClient) -> None:
    browser.messages()
    log_in(browser, site, "operator")
    browser.wait_for_text("#queues [data-state=ready]", "0")
    put(queue, 1200)
    browser.wait_for_text("#queues [data-state=ready]", "1,200")
    for _ in range(7):
        assert queue.call(f"queue.tube.{TUBE}:take", 0).ok
    browser.wait_for_text("#queues [data-state=taken]", "7")
    assert browser.text("#queues [data-state=ready]") == "1,193"
    assert browser.run("return document.querySelectorAll('.charts canvas').length") == 4
    # Nothing is refused by the page's own policy, and nothing is loaded from elsewhere.
    assert [text for text in browser.messages() if "401 (Unauthorized)" not in text] == []
    loaded = browser.run("return performance.getEntriesByType('resource').map(each => each.name)")
    assert loaded
    assert all(name.startswith(site) for name in loaded), loaded
    assert browser.run("return document.cookie") == ""


def test_kick_and_delete(browser: Browser, site: str, queue: IprotoClient) -> None:
    put(queue, 60)
    for number in range(5):
        assert queue.call(f"queue.tube.{TUBE}:bury", number).ok
    log_in(browser, site, "operator")
    open_tube(browser)
    browser.wait_for_text("#counts [data-state=buried]", "5")
    browser.write("#kick input", "3")
    browser.click("#kick button")
    browser.wait_for_text("dialog[open]", "Kick up to 3 tasks?")
    browser.click("#confirm")
    browser.wait_for_text("#message", "Kicked 3 tasks.")
    browser.wait_for_text("#counts [data-state=buried]", "2")

    browser.click("#state option[value=buried]")
    browser.wait(
        lambda: browser.run("return document.querySelectorAll(arguments[0]).length", ROWS) == 2, "two rows"
    )
    browser.click("thead input[type=checkbox]")
    browser.click("[data-action=delete]")
    browser.wait_for_text("dialog[open]", "Delete 2 tasks?")
    assert browser.run("return document.activeElement.innerText") == "Cancel"
    browser.click("#confirm")
    browser.wait_for_text("#message", "Deleted 2 tasks.")
    browser.wait_for_text("#counts [data-state=buried]", "0")
    [count] = queue.call("operator.queue", TUBE).data
    assert (count["tasks"]["ready"], count["tasks"]["buried"]) == (58, 0)


def test_dead_letters_and_a_pause(browser: Browser, site: str, queue: IprotoClient) -> None:
    options = {"release_limit": 1, "release_limit_policy": "DLQ"}
    assert queue.call("operator.configure", TUBE, options).ok
    put(queue, 1)
    queue.call(f"queue.tube.{TUBE}:take", 0)
    assert queue.call(f"queue.tube.{TUBE}:release", 0).ok
    log_in(browser, site, "operator")
    open_tube(browser)
    browser.wait_for_text("#settings", "release_limit: 1, release_limit_policy: DLQ")
    browser.click("[data-change=pause]")
    browser.wait_for_text("#message", "The queue is paused.")
    browser.wait_for_text(
        "#state-of-queue", "This queue is paused. Consumers keep waiting until it is resumed."
    )
    browser.click("[data-change=resume]")
    browser.wait_for_text("#message", "The queue is running.")

    browser.click("#to-queues")
    browser.click("#queues tbody tr:nth-child(2) a")
    browser.wait_for_text("main h2", f"{TUBE}_dlq")
    browser.click("[aria-label='Task 0']")
    browser.click("[data-action=requeue]")
    browser.wait_for_text("dialog[open]", "Requeue the task 0?")
    browser.click("#confirm")
    browser.wait_for_text("#message", "Requeued 1 task.")
    assert queue.call("operator.task", TUBE, 0).data[0]["state"] == "ready"
    assert queue.call("operator.configure", TUBE, {"release_limit": None, "release_limit_policy": None}).ok
    assert queue.call(f"queue.tube.{TUBE}_dlq:drop").ok


def test_pages_search_and_payloads(browser: Browser, site: str, queue: IprotoClient) -> None:
    put(queue, 60)
    log_in(browser, site, "operator")
    open_tube(browser)
    browser.find('[data-id="49"]')
    browser.click("main nav button:last-child")
    browser.find('[data-id="59"]')
    browser.wait_for_text("main nav", "Page 2")
    browser.write("#search input", "7")
    browser.click("#search button")
    browser.wait_for_text("dialog pre", '"to": "ann7@example.com"')
    browser.click("dialog .row button:last-child")
    browser.write("#search input", "4711")
    browser.click("#search button")
    browser.wait_for_text("#message", "there is no task 4711")


def test_what_a_client_has_written_is_only_text(browser: Browser, site: str, queue: IprotoClient) -> None:
    text = "<img src=x onerror=\"document.title='bad'\"><script>document.title='bad'</script>"
    assert queue.call(f"queue.tube.{TUBE}:put", text).ok
    log_in(browser, site, "operator")
    open_tube(browser)
    browser.wait_for_text("#tasks", "<img src=x")
    title, images = browser.run("return [document.title, document.images.length]")
    assert title.startswith(f"{TUBE} – ")
    assert images == 0


def test_every_page_names_the_product_and_the_instance(
    browser: Browser, site: str, server: RunningServer
) -> None:
    log_in(browser, site, "operator")
    for page, found, title in (("#to-queues", "#queues", "Queues"), ("#to-schedules", "#new", "Schedules")):
        browser.click(page)
        browser.find(found)
        name = browser.text("#instance")
        assert name == server.address
        assert browser.run("return document.title") == f"{title} – {name} – iproto-server"
        assert browser.text("h1") == f"iproto-server {name}"


def test_a_task_has_an_address(browser: Browser, site: str, queue: IprotoClient) -> None:
    put(queue, 3)
    log_in(browser, site, "operator")
    open_tube(browser)
    browser.click("[data-id='2'] a")
    browser.wait_for_text("dialog pre", '"n": 2')
    address = browser.run("return location.href")
    assert browser.run("return document.title").startswith("Task 2 – ")
    browser.open("about:blank")
    browser.open(address)
    browser.wait_for_text("dialog pre", '"n": 2')
    browser.click("dialog .row button:last-child")
    browser.wait(
        lambda: "tasks" not in browser.run("return location.hash"), "the address is that of the task"
    )
    browser.open(address.removesuffix("2") + "4711")
    browser.wait_for_text("#message", "there is no task 4711")


def test_failed_attempts_are_shown(browser: Browser, site: str, queue: IprotoClient) -> None:
    assert queue.call("operator.configure", TUBE, {"release_limit": 9}).ok
    put(queue, 1)
    for _ in range(2):
        assert queue.call(f"queue.tube.{TUBE}:take", 0).ok
        assert queue.call(f"queue.tube.{TUBE}:release", 0).ok
    log_in(browser, site, "operator")
    open_tube(browser)
    browser.wait_for_text("#tasks", "2 (2 released)")
    browser.click("#tasks tbody a")
    browser.wait_for_text("dialog", "2 (2 released)")
    assert queue.call("operator.configure", TUBE, {"release_limit": None}).ok


def test_charts_fold_and_empty_ones_say_so(browser: Browser, site: str, queue: IprotoClient) -> None:
    assert queue.call("queue.create_tube", "quiet", "fifo").ok
    try:
        log_in(browser, site, "operator")
        browser.click("#queues a[href='#/queues/quiet']")
        browser.wait_for_text("#charts", "No task was taken in the last hour.")
        browser.click("#charts summary")
        browser.wait(lambda: browser.run("return !document.querySelector('.charts')"), "the charts stay")
        log_in(browser, site, "operator")
        browser.find("#charts:not([open])")
        browser.click("#charts summary")
        browser.find(".charts canvas")
    finally:
        browser.run("localStorage.clear()")  # where the browser remembers it
        assert queue.call("queue.tube.quiet:drop").ok


@pytest.mark.parametrize("width", [1280, 390])
def test_the_form_of_a_put_has_units_choices_and_its_button_in_view(
    browser: Browser, site: str, queue: IprotoClient, width: int
) -> None:
    browser.resize(width, 700)
    try:
        log_in(browser, site, "operator")
        open_tube(browser)
        browser.click("#put")
        text = browser.wait_for_text("dialog", "Time to run")
        assert "seconds" in text
        choices = (
            "return [...document.querySelectorAll('[name=release_limit_policy] option')].map(e => e.value)"
        )
        assert browser.run(choices) == ["", "BURY", "DELETE", "DLQ"]
        bottom = "return document.querySelector('dialog button.main').getBoundingClientRect().bottom"
        assert browser.run(bottom) <= 700
        browser.write("dialog textarea", "{bad")
        browser.click("dialog button.main")
        browser.wait_for_text("dialog [role=alert]", "The payload is no JSON")
        browser.write("dialog textarea", "1")
        browser.write("dialog [name=retry]", "{")
        browser.click("dialog button.main")
        browser.wait_for_text("dialog [role=alert]", "The option “Retries” is no JSON")
        assert browser.run(bottom) <= 700
        assert queue.call("operator.queue", TUBE).data[0]["tasks"]["ready"] == 0
    finally:
        browser.resize(1280)


def test_putting_a_task_with_the_keyboard(browser: Browser, site: str, queue: IprotoClient) -> None:
    log_in(browser, site, "operator")
    open_tube(browser)
    browser.press("#put", "\ue007")  # Enter
    browser.write("dialog textarea", '{"to": "bob"}')
    browser.write("dialog input[name=delay]", "60")
    browser.click("dialog form button.main")
    browser.wait_for_text("#message", "Put the task")
    browser.wait_for_text("#counts [data-state=delayed]", "1")
