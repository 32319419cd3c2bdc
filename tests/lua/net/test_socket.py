"""Sockets behave as those of a real Tarantool."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lua.modules.alike import assert_alike, comparable
from tests.lua.net.sections import sections
from tests.lua.snippets import OurLua, TarantoolLua

PREAMBLE, SNIPPETS = sections(Path(__file__).with_name("sockets.lua"))


@pytest.mark.real_tarantool
@pytest.mark.parametrize("name", SNIPPETS)
def test_alike(ours: OurLua, real: TarantoolLua, name: str) -> None:
    assert_alike(ours, real, PREAMBLE + SNIPPETS[name])


UNIX = """
local path = %r
local function greet(client, from) client:write(named(client) .. from.host) end
local server = socket.tcp_server('unix/', path, greet)
local client = socket.tcp_connect('unix/', path)
local answer = client:read(1000)
local second = {socket.tcp_server('unix/', path, print), errno()}
local names = {server:name(), client:peer(), client:name()}
server:close()
local exists = require('fio').path.exists(path)
local left = socket('AF_UNIX', 'SOCK_STREAM', 0)
left:bind('unix/', path)
left:listen()
left:close()
local third = socket.tcp_server('unix/', path, print)
local is_taken_over = third ~= nil
third:close()
return answer, second, names, exists, is_taken_over, named(client)
"""


@pytest.mark.real_tarantool
def test_paths_are_alike(ours: OurLua, real: TarantoolLua, tmp_path: Path) -> None:
    snippet = PREAMBLE + UNIX % str(tmp_path / "socket")
    assert comparable(ours.run(snippet)) == comparable(real.run(snippet))


def test_fibers_that_read_from_one_socket_share_it(ours: OurLua) -> None:
    snippet = """
        local a, b = pair()
        local got = {}
        for place = 1, 3 do fiber.create(function() got[place] = a:read(1) end) end
        b:write('xyz')
        while #got < 3 do fiber.sleep(0.001) end
        return table.concat(got)
    """
    assert ours.run(PREAMBLE + snippet) == 'ok "xyz"'


def test_no_descriptor_is_left_open(ours: OurLua) -> None:
    snippet = """
        local function open() return #require('fio').listdir('/proc/self/fd') end
        local function round()
            local function fail(client) client:read(1) error('no', 0) end
            local server = socket.tcp_server('127.0.0.1', 0, fail)
            local port = server:name().port
            for _ = 1, 5 do
                local client = socket.tcp_connect('127.0.0.1', port)
                local reader = fiber.create(function() client:read(1) end)
                client:write('x')
                reader:cancel()
                pcall(socket.tcp_connect, '127.0.0.1', 1)
                fiber.sleep(0)
            end
            server:close()
        end
        round()
        for _ = 1, 20 do collectgarbage() fiber.sleep(0.001) end
        local before = open()
        for _ = 1, 10 do round() end
        for _ = 1, 20 do collectgarbage() fiber.sleep(0.001) end
        return open() - before <= 0
    """
    logged = PREAMBLE + snippet
    assert ours.run(logged) == "ok true"


def test_a_watched_socket_is_closed_when_nobody_refers_to_it(ours: OurLua) -> None:
    snippet = """
        local a, b = pair()
        b:read(1, 0.001) -- the event loop watches it from now on
        b = nil
        for _ = 1, 5 do collectgarbage() fiber.sleep(0.001) end
        return a:read(1, 5)
    """
    assert ours.run(PREAMBLE + snippet) == 'ok ""'


def test_a_server_survives_many_connections(ours: OurLua) -> None:
    snippet = """
        local served = 0
        local server = socket.tcp_server('127.0.0.1', 0, {handler = function(client)
            client:write(client:read('\\n'))
            served = served + 1
        end})
        local port, waiting = server:name().port, 200
        for number = 1, 200 do
            fiber.create(function()
                local client = socket.tcp_connect('127.0.0.1', port)
                client:write(number .. '\\n')
                assert(client:read('\\n') == number .. '\\n')
                client:close()
                waiting = waiting - 1
            end)
        end
        while waiting > 0 do fiber.sleep(0.001) end
        server:close()
        return served
    """
    assert ours.run(PREAMBLE + snippet) == "ok 200"


@pytest.mark.real_tarantool
def test_metrics_go_to_graphite(ours: OurLua, real: TarantoolLua) -> None:
    snippet = """
        local graphite = udp()
        graphite:bind('127.0.0.1', 0)
        local found = socket.getaddrinfo('127.0.0.1', graphite:name().port, 1, {type = 'SOCK_DGRAM'})
        local remote = socket('AF_INET', 'SOCK_DGRAM', 'udp')
        local result = remote:sendto(found[1].host, found[1].port, 'queue.stats.total 5 1500000000\\n')
        graphite:readable(1)
        return result, graphite:recv(100)
    """
    expected = 'ok 30 "queue.stats.total 5 1500000000\\010"'
    assert re.sub(r"\d+ ", "", ours.run(PREAMBLE + snippet)) == re.sub(r"\d+ ", "", expected)
    assert_alike(ours, real, PREAMBLE + snippet)
