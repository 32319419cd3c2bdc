-- box.schema: spaces, users, roles, functions and sequences.
--
-- Source: Tarantool reference, "Submodule box.schema".
local functions = require('internal.box.functions')

local function asked(name)
    return function(...) return functions.ask(name, ...) end
end

local function group(name, methods)
    local found = {}
    for _, method in ipairs(methods) do found[method] = asked(('box.schema.%s.%s'):format(name, method)) end
    return found
end

local schema = {
    user = group('user', {
        'create', 'drop', 'exists', 'grant', 'revoke', 'passwd', 'password', 'enable', 'disable', 'info',
    }),
    role = group('role', {'create', 'drop', 'exists', 'grant', 'revoke', 'info'}),
    func = group('func', {'create', 'drop', 'exists'}),
    sequence = group('sequence', {'create', 'alter', 'drop'}),
}

function schema.create_space(name, options)
    local is_there = type(name) == 'string' and box.space[name] ~= nil
    local described = functions.ask('box.schema.space.create', name, options)
    return box.space[described.name], is_there and 'not created' or 'created'
end

function schema.sequence.create(name, options)
    local described, note = functions.ask('box.schema.sequence.create', name, options)
    if note then return box.sequence[described.name], note end
    return box.sequence[described.name]
end

schema.space = {create = schema.create_space}

function schema.space.drop(id, name, options)
    return functions.ask('space', id, 'drop')
end

return schema
