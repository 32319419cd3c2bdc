"""A real browser (Debian's chromium), driven over the WebDriver protocol."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from iproto_server.testing.logged_process import LoggedProcess
from tests.programs import require_program

TIMEOUT: Final = 40
_ELEMENT: Final = "element-6066-11e4-a52e-4f735466cecf"
_FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
)


class Browser:
    """A browser with a new profile. Use as a context manager.

    Parameters:
        directory: where its profile goes.
    """

    def __init__(self, directory: Path) -> None:
        browser = require_program("chromium", "chromium")
        driver = require_program("chromedriver", "chromium-driver")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._process = LoggedProcess([driver, f"--port={port}"], cwd=directory)
        self._base = f"http://127.0.0.1:{port}/session"
        try:
            self._process.wait_for("started successfully")
            options = {
                "binary": browser,
                "args": [*_FLAGS, f"--user-data-dir={directory / 'profile'}"],
            }
            capabilities = {
                "alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            }
            self._base += "/" + self._post("", capabilities=capabilities)["sessionId"]
        except BaseException:
            self._process.kill()
            raise

    def open(self, url: str) -> None:
        """Go to a page."""
        self._post("/url", url=url)

    def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Set the size of the page and its colours."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **metrics)
        self.command("Emulation.setScrollbarsHidden", hidden=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def command(self, name: str, **parameters: object) -> Any:
        """Send a command of the DevTools protocol."""
        return self._post("/goog/cdp/execute", cmd=name, params=parameters)

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script in the page, and return its result."""
        return self._post("/execute/sync", script=script, args=list(arguments))

    def run_async(self, script: str, *arguments: object) -> Any:
        """Run a script that calls its last argument with the result."""
        return self._post("/execute/async", script=script, args=list(arguments))

    def find(self, selector: str) -> str:
        """Wait for an element, and return it."""
        return str(self.wait(lambda: self._find(selector), f"{selector} is not there"))

    def click(self, selector: str) -> None:
        """Click on an element, once it is there."""
        self._post(f"/element/{self.find(selector)}/click")

    def write(self, selector: str, text: str) -> None:
        """Write into a field."""
        self._post(f"/element/{self.find(selector)}/clear")
        self.press(selector, text)

    def press(self, selector: str, keys: str) -> None:
        """Press keys while an element has the focus."""
        self._post(f"/element/{self.find(selector)}/value", text=keys)

    def text(self, selector: str) -> str:
        """Return the text of an element; nothing if it is not there."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def wait_for_text(self, selector: str, wanted: str) -> str:
        """Wait until an element has a text, and return all of it."""
        self.wait(lambda: wanted in self.text(selector), f"{selector} does not say {wanted!r}")
        return self.text(selector)

    def wait(self, condition: Callable[[], Any], failure: str) -> Any:
        """Wait until something is true.

        Raises:
            AssertionError: it never was.
        """
        deadline = time.monotonic() + TIMEOUT
        while not (found := condition()):
            assert time.monotonic() < deadline, f"{failure}\n{self.text('body')}\n{self.messages()}"
            time.sleep(0.1)
        return found

    def messages(self) -> list[str]:
        """Return what the browser has written to the console since the last time."""
        return [entry["message"] for entry in self._post("/se/log", type="browser")]

    def picture(self, file: Path) -> None:
        """Write a picture of the whole page."""
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def _find(self, selector: str) -> str | None:
        found = self._post("/elements", using="css selector", value=selector)
        return found[0][_ELEMENT] if found else None

    def _post(self, path: str, **body: object) -> Any:
        request = Request(
            self._base + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            raise AssertionError(error.read().decode()) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with urlopen(Request(self._base, method="DELETE"), timeout=60):
            pass
        self._process.terminate()
