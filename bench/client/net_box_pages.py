"""Reads spaces with net.box, the client library of Tarantool's own Lua, page by page.

`bench.lib.query_process` describes input and output of the program.
"""

from __future__ import annotations

from typing import Final

_SCRIPT: Final = """
local clock, json = require('clock'), require('json')
local net_box, socket = require('net.box'), require('socket')

local function read(query)
    local connection = net_box.connect(query.url)
    assert(connection.state == 'active', connection.error)
    local space, rows = connection.space[query.space], 0
    local page = space:select(nil, {limit = query.page_rows})
    while #page > 0 do
        for _, tuple in ipairs(page) do
            tuple:unpack()
        end
        rows = rows + #page
        page = space:select({page[#page][1]}, {iterator = 'GT', limit = query.page_rows})
    end
    connection:close()
    return rows
end

while socket.iowait(0, 'R') do
    local line = io.read()
    if line == nil then
        break
    end
    local query, begin = json.decode(line), clock.monotonic()
    local rows = read(query)
    print(json.encode({rows = rows, seconds = clock.monotonic() - begin}))
    io.flush()
end
os.exit(0)
"""
"""A tuple decodes its fields when it is unpacked. `io.read` alone would stop the event loop's clock."""


def command(tarantool: str) -> list[str]:
    """Return the command that reads.

    Parameters:
        tarantool: the path of Tarantool's program.
    """
    return [tarantool, "-e", _SCRIPT]
