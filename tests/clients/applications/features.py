"""Procedures for tests of the clients' features, in Lua for a real Tarantool.

`features_application` has the same for our server.
"""

TELLTALE = "telltale"
"""A space whose changes are pushed to the client that makes them."""

LUA = f"""\
box.schema.space.create('{TELLTALE}', {{if_not_exists = true}})
box.space.{TELLTALE}:create_index('primary', {{if_not_exists = true}})
box.space.{TELLTALE}:on_replace(function(old, new)
    box.session.push({{new and 'here' or 'gone', (new or old)[1]}})
end)
"""
LUA += """\
local fiber = require('fiber')
local gates = {}
local nodes = {}

local function gate(name)
    gates[name] = gates[name] or fiber.channel(1)
    return gates[name]
end

features = {}

function features.echo(...)
    return ...
end

function features.push(...)
    for _, message in ipairs({...}) do
        box.session.push(message)
    end
    return 'answer'
end

function features.push_and_fail(message)
    box.session.push(message)
    box.error({code = 1000, reason = 'failed'})
end

function features.push_when_open(name)
    box.session.push('before')
    gate(name):get()
    box.session.push('after')
    return 'answer'
end

function features.wait(name)
    gate(name):get()
    return 'open'
end

function features.open(name)
    gate(name):put(true)
end

function features.fail_for_a_reason()
    local cause = box.error.new({code = 1001, reason = 'the disk is full'})
    local failure = box.error.new({code = 1000, reason = 'it cannot be stored'})
    failure:set_prev(cause)
    failure:raise()
end

function features.fail_with_own_type()
    box.error({code = 1000, reason = 'out of cheese', type = 'CheeseError'})
end

function features.raise_text(text)
    error(text, 0)
end

function features.set_nodes(list)
    nodes = list
end

function features.nodes()
    return nodes
end
"""
