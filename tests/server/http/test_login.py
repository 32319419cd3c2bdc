"""Logins of browsers: cookies, delays, links, and who is refused."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from iproto_server import Application, Box
from iproto_server.config.address import Address
from iproto_server.server.http import login
from iproto_server.server.http.guards import KnownHosts
from iproto_server.server.http.login import Logins
from tests.config.certificates import Certificates
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.http.api_client import ApiClient
from tests.server.http.dashboard_application import PASSWORD
from tests.server.http.http_client import HTTP, http_port, request
from tests.server.in_process import ServerInProcess

USERS = "tests.server.http.dashboard_application:app"
LINK = r"http://127\.0\.0\.1:\d+/#token=([\w-]{43})$"


@pytest.fixture(scope="module")
def applications() -> Sequence[str]:
    return [USERS]


@pytest.fixture(scope="module")
def server_options() -> Sequence[str]:
    return [*HTTP, "--http-host", "queue.example.com"]


@pytest.fixture(scope="module")
def port(server: RunningServer) -> int:
    return http_port(server)


@pytest.fixture
def api(port: int) -> ApiClient:
    return ApiClient(port)


class TestPasswords:
    def test_the_cookie(self, api: ApiClient) -> None:
        answer = api.log_in("operator", PASSWORD)
        assert json.loads(answer.text)["user"] == "operator"
        cookie = answer.headers["set-cookie"]
        assert re.fullmatch(r"iproto-[0-9a-f]{8}=[\w-]{43}; HttpOnly; Path=/; SameSite=strict", cookie), (
            cookie
        )
        assert api.get("session")["user"] == "operator"

    def test_logging_out(self, api: ApiClient) -> None:
        api.log_in("operator", PASSWORD)
        cookie = api.cookie
        answer = api.send("POST", "logout")
        assert "Max-Age=0" in answer.headers["set-cookie"]
        api.cookie = cookie
        assert api.refused("session", method="GET") == (401, "log in first")
        assert api.send("POST", "logout").status == 200

    def test_another_login_ends_the_first_one(self, api: ApiClient) -> None:
        api.log_in("operator", PASSWORD)
        first = api.cookie
        api.log_in("viewer", PASSWORD)
        assert api.get("session")["user"] == "viewer"
        api.cookie = first
        assert api.refused("session", method="GET")[0] == 401

    @pytest.mark.parametrize(
        ("user", "password"),
        [("operator", "wrong"), ("nosuch", PASSWORD), ("super", "x"), ("guest", "x"), ("admin", "x")],
    )
    def test_a_wrong_one(self, server: RunningServer, api: ApiClient, user: str, password: str) -> None:
        assert api.refused("login", {"user": user, "password": password}) == (
            401,
            "the user or the password is wrong",
        )
        assert api.cookie == ""
        server.process.wait_for("login failed user=.* address=127.0.0.1 over=http")
        assert PASSWORD not in server.process.output

    @pytest.mark.parametrize(
        ("body", "text"),
        [
            ({}, "give user and password, or a token"),
            ({"user": "operator"}, "give user and password, or a token"),
            ({"user": "operator", "password": "x", "token": "y"}, "give user and password, or a token"),
            ({"user": "operator", "password": ""}, "password must be a text of 1 to 1024 characters"),
            ({"user": "operator", "password": 5}, "password must be a text of 1 to 1024 characters"),
            ({"user": "x" * 1025, "password": "x"}, "user must be a text of 1 to 1024 characters"),
            ({"user": "operator", "password": "x", "admin": True}, 'there is no field "admin"'),
        ],
    )
    def test_wrong_input(self, api: ApiClient, body: object, text: str) -> None:
        status, error = api.refused("login", body)
        assert (status, text in error) == (400, True), error

    def test_wrong_ones_are_delayed_as_those_of_iproto(self, tmp_path: Path) -> None:
        users = Application("users")

        @users.setup
        def setup(box: Box) -> None:
            box.schema.user.create("ann", password=PASSWORD)

        with ServerInProcess(tmp_path, [users], http=Address("127.0.0.1", 0)) as running:
            api = ApiClient(_port(running))
            authentication = running.server.dispatcher.authentication
            for _ in range(5):
                assert api.log_in("ann", "wrong").status == 401
            delayed = api.log_in("ann", "wrong")
            assert (delayed.status, delayed.headers["retry-after"]) == (429, "1")
            assert json.loads(delayed.text)["error"] == (
                "the user or the password is wrong; wait 1 second before the next try"
            )
            assert (authentication.failures, authentication.delayed) == (6, 1)
            assert authentication.delays.begin("127.0.0.1", "ann").delay > 0
            assert api.log_in("ann", PASSWORD).status == 200  # after its delay

    def test_a_new_password_ends_logins(self, start_server: StartServer) -> None:
        server = start_server([USERS], HTTP)
        api = ApiClient(http_port(server))
        assert api.log_in("viewer", PASSWORD).status == 200
        with IprotoClient.at(server.address) as client:
            assert client.call("set_password", "viewer", "new").ok
            assert api.refused("session", method="GET")[0] == 401
            assert api.log_in("viewer", PASSWORD).status == 401
            assert api.log_in("viewer", "new").status == 200
            assert client.call("drop_user", "viewer").ok
            assert api.refused("session", method="GET")[0] == 401

    def test_a_stop_waits_for_no_login(self, start_server: StartServer) -> None:
        server = start_server([USERS], HTTP)
        assert ApiClient(http_port(server)).log_in("viewer", PASSWORD).status == 200
        server.stop()


class TestLinks:
    def test_a_link_works_once(self, start_server: StartServer) -> None:
        server = start_server([QUEUE_APPLICATION], HTTP)
        api = ApiClient(http_port(server))
        token = server.process.wait_for(LINK)[1]
        assert api.refused("login", {"token": "wrong"}) == (401, "the link has been used, or is wrong")
        assert api.post("login", token=token)["user"] == "guest"
        assert api.get("queues")["queues"][0]["name"] == "queue"
        assert ApiClient(api.port).refused("login", {"token": token})[0] == 401
        again = [found for found in re.findall(LINK, server.process.output, re.MULTILINE) if found != token]
        assert ApiClient(api.port).post("login", token=again[0])["user"] == "guest"

    def test_there_is_none_with_passwords(self, server: RunningServer, api: ApiClient) -> None:
        assert "#token" not in server.process.output
        assert api.refused("login", {"token": "x"})[0] == 401

    def test_there_is_none_for_a_guest_without_rights(self, start_server: StartServer) -> None:
        server = start_server([QUEUE_APPLICATION], [*HTTP, "--guest", "none"])
        http_port(server)
        server.stop()
        assert "#token" not in server.process.output

    def test_a_password_ends_it(self, start_server: StartServer) -> None:
        server = start_server([QUEUE_APPLICATION], HTTP)
        api = ApiClient(http_port(server))
        token = server.process.wait_for(LINK)[1]
        with IprotoClient.at(server.address) as client:
            assert client.call("box.schema.user.create", "ann", {"password": "x"}).ok
        assert api.refused("login", {"token": token})[0] == 401

    def test_guest_has_no_password_to_log_in_with(self, start_server: StartServer) -> None:
        api = ApiClient(http_port(start_server([QUEUE_APPLICATION], HTTP)))
        assert api.log_in("guest", "").status == 400
        assert api.log_in("guest", "guest").status == 401


class TestOrigins:
    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1",
            "127.0.0.1:8081",
            "[::1]:80",
            "localhost:1",
            "LocalHost",
            "queue.example.com",
            "192.0.2.1",
        ],
    )
    def test_a_known_host(self, port: int, host: str) -> None:
        assert request(port, "/api/openapi.json", headers={"Host": host}).status == 200

    @pytest.mark.parametrize(
        "host",
        [
            *(
                "evil.example.com",
                "queue.example.com.evil.org",
                "127.0.0.1.evil.org",
                "localhost.evil.org:80",
            ),
            *("a@localhost", "localhost/x", "localhost:x", "[::1", "", "1.2.3", "localhost, evil.org"),
        ],
    )
    @pytest.mark.parametrize("path", ["/", "/api/openapi.json", "/api/login", "/static/app.js"])
    def test_an_unknown_host(self, port: int, host: str, path: str) -> None:
        answer = request(port, path, headers={"Host": host})
        assert answer.status == 421
        assert "unknown Host" in json.loads(answer.text)["error"]

    @pytest.mark.parametrize("path", ["/health", "/ready", "/metrics"])
    def test_probes_and_prometheus_have_any_host(self, port: int, path: str) -> None:
        assert request(port, path, headers={"Host": "queue:8081"}).status == 200

    @pytest.mark.parametrize(
        "origin",
        [
            "https://evil.example.com",
            "null",
            "http://127.0.0.1:1",
            "http://localhost",
            "file://",
            "",
            "http://",
        ],
    )
    @pytest.mark.parametrize("path", ["login", "logout", "snapshot", "queues/x/put"])
    def test_a_foreign_origin(self, api: ApiClient, origin: str, path: str) -> None:
        api.log_in("operator", PASSWORD)
        answer = api.send("POST", path, headers={"Origin": origin})
        assert (answer.status, "other origins" in answer.text) == (403, True)

    def test_its_own_origin(self, api: ApiClient) -> None:
        body = {"user": "operator", "password": PASSWORD}
        origin = {"Origin": f"http://127.0.0.1:{api.port}", "Sec-Fetch-Site": "same-origin"}
        assert api.send("POST", "login", body, origin).status == 200
        behind = {"Host": "queue.example.com", "Origin": "https://queue.example.com"}
        assert api.send("POST", "login", body, behind).status == 200

    @pytest.mark.parametrize("site", ["cross-site", "same-site"])
    def test_a_browser_says_that_another_site_asks(self, port: int, site: str) -> None:
        headers = {"Sec-Fetch-Site": site}
        assert request(port, "/api/status", headers=headers).status == 403
        assert request(port, "/api/login", "POST", headers=headers).status == 403
        assert request(port, "/", headers=headers).status == 200  # a link from elsewhere


class TestHeaders:
    @pytest.mark.parametrize("path", ["/", "/api/openapi.json", "/api/nosuch", "/static/nosuch"])
    def test_of_all_answers(self, port: int, path: str) -> None:
        headers = request(port, path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "*" not in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "server" not in headers

    def test_answers_of_the_api_are_not_kept(self, api: ApiClient) -> None:
        answer = api.log_in("operator", PASSWORD)
        assert answer.headers["cache-control"] == "no-store"

    def test_files_are_kept_until_they_change(self, port: int) -> None:
        answer = request(port, "/static/app.js")
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        again = request(port, "/static/app.js", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status, again.text) == (304, "")

    @pytest.mark.parametrize("name", ["../login.py", "..%2flogin.py", "README.md", "%00", "nosuch"])
    def test_other_files_are_not_served(self, port: int, name: str) -> None:
        assert request(port, f"/static/{name}").status == 404


def test_the_cookie_over_tls(start_server: StartServer, tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    key = files.server.with_suffix(".key")
    address = f"127.0.0.1:0?transport=ssl&ssl_key_file={key}&ssl_cert_file={files.server}"
    port = http_port(start_server([USERS], ["--http", address]))
    context = ssl.create_default_context(cafile=files.authority)
    context.check_hostname = False
    body = json.dumps({"user": "viewer", "password": PASSWORD}).encode()
    headers = {"Content-Type": "application/json"}
    answer = request(port, "/api/login", "POST", headers, context, body)
    assert answer.status == 200
    assert answer.headers["set-cookie"].startswith("__Host-iproto-")
    assert "Secure" in answer.headers["set-cookie"]
    plain_origin = headers | {"Origin": f"http://127.0.0.1:{port}"}
    assert request(port, "/api/login", "POST", plain_origin, context, body).status == 403


def test_the_cookie_behind_a_proxy(start_server: StartServer) -> None:
    server = start_server([USERS], [*HTTP, "--http-behind-proxy", "--metrics-listen", "127.0.0.1:0"])
    cookie = ApiClient(http_port(server)).log_in("viewer", PASSWORD).headers["set-cookie"]
    assert cookie.startswith("__Host-")
    assert "Secure" in cookie


class TestLogins:
    """Their end and their number."""

    @pytest.fixture
    def box(self, tmp_path: Path) -> Iterator[Box]:
        users = Application("users")

        @users.setup
        def setup(box: Box) -> None:
            for name in ("ann", "bob"):
                box.schema.user.create(name, password="x")

        with ServerInProcess(tmp_path, [users]) as running:
            yield running.server.box

    @pytest.mark.parametrize("step", [login.IDLE, login.IDLE / 2])
    def test_they_end(self, box: Box, step: float) -> None:
        now = 0.0
        logins = Logins(box, lambda: now)
        value = logins.begin(box.access.by_name("ann"), "1.2.3.4:5")
        used = 0
        while logins.find(value, "1.2.3.4:6") is not None:
            used += 1
            now += step
        assert now == (login.IDLE if step == login.IDLE else login.LIFETIME)
        assert len(logins) == 0

    def test_they_are_limited(self, box: Box) -> None:
        logins = Logins(box)
        ann, bob = (box.access.by_name(name) for name in ("ann", "bob"))
        of_bob = logins.begin(bob, "1.2.3.4:5")
        of_ann = [logins.begin(ann, "1.2.3.4:5") for _ in range(login.MAX_SESSIONS_PER_USER + 1)]
        assert logins.find(of_bob, "1.2.3.4:5") is not None
        assert logins.find(of_ann[0], "1.2.3.4:5") is None
        assert len(logins) == login.MAX_SESSIONS_PER_USER + 1
        before = len(box.session.sessions)
        logins.end_all()
        assert len(box.session.sessions) == before - login.MAX_SESSIONS_PER_USER - 1


def test_known_hosts() -> None:
    hosts = KnownHosts(["Queue.example.com", ""])
    assert "queue.example.com:443" in hosts
    assert "" not in hosts


def _port(running: ServerInProcess) -> int:
    [address] = [
        listener.address for listener in cast("Any", running.server.listeners) if _is_http(running, listener)
    ]
    return int(address.port)


def _is_http(running: ServerInProcess, listener: Any) -> bool:
    return str(listener.address) not in running.server.box.listen
