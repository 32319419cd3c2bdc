-- Tarantool's module uri: parse and format. Percent signs are not decoded.
-- On purpose different: a text with `://` that has no valid host behind it, and `unix/:` with an invalid path, are a
-- host with a path, where Tarantool mixes fields of both. A text that begins with `@` is invalid, and a login that
-- looks like an address is no `ipv4`.
local NAME = "[%w!$%%&'()*+,%-.;=_~]"
local PATH = "[%w!$%%&'()*+,%-.;=_~/:@|]"
local UNIX = "[%w!$%%&'()*+,%-.;=_~@/]"
local QUERY = "[%w!$%%&'()*+,%-.;=_~/:@|?]"
local IPV4 = '^%d%d?%d?%.%d%d?%d?%.%d%d?%d?%.%d%d?%d?$'

-- The query and the fragment, up to the end. Returns whether the text ends there.
local function parse_tail(text, place, fields)
    local query, after_query = text:match('^%?(' .. QUERY .. '*)()', place)
    place = after_query or place
    local fragment, after_fragment = text:match('^#(' .. QUERY .. '*)()', place)
    place = after_fragment or place
    if place ~= #text + 1 then return false end
    fields.query, fields.fragment = query, fragment
    return true
end

local function is_ipv6(text)
    local mapped = text:match('^::ffff:(.*%..*)$')
    if mapped then return mapped:find(IPV4) ~= nil end
    local _, colons = text:gsub(':', '')
    return text:find('^[%x:]+$') ~= nil and colons >= 1 and colons <= 8 and not text:find('%x%x%x%x%x')
end

-- The host, what follows it, and the place after them.
local function parse_host(text, place, fields)
    local ipv6, after = text:match('^%[([^%]]*)%]()', place)
    if ipv6 then
        if not is_ipv6(ipv6) then return nil end
        fields.host, fields.ipv6 = ipv6, ipv6
    else
        local host
        host, after = text:match('^(' .. NAME .. '+)()', place)
        if not host then return nil end
        fields.host = host
        if host:find(IPV4) then fields.ipv4 = host end
    end
    if text:sub(after, after) == ':' then
        after = after + 1
        local service, after_service = text:match('^(%d+)()', after)
        if not service then service, after_service = text:match('^(%a+)()', after) end
        fields.service, after = service, after_service or after
    end
    local path, after_path = text:match('^(/' .. PATH .. '*)()', after)
    fields.path = path
    return after_path or after
end

-- The path of a unix socket, which a path of its own may follow.
local function parse_unix(text, place, fields)
    local socket, after = text:match('^unix/:(/' .. UNIX .. '*)()', place)
    if not socket or socket:find('//', 1, true) or socket:sub(-1) == '/' then return nil end
    fields.host, fields.service, fields.unix = 'unix/', socket, socket
    if text:sub(after, after) == ':' then
        local path, after_path = text:match('^(/' .. PATH .. '*)()', after + 1)
        fields.path = path
        return after_path or after + 1
    end
    return after
end

-- What comes after a scheme. Returns the fields, or nil if it is invalid.
local function parse_location(text, place, has_scheme)
    local user = {}
    local login, after_login = text:match('^(' .. NAME .. '+)@()', place)
    if login then
        user.login, place = login, after_login
    else
        local name, password, after = text:match('^(' .. NAME .. '+):(' .. NAME .. '*)@()', place)
        if name then user.login, user.password, place = name, password, after end
    end
    local socket = user.login and not has_scheme and text:match('^(/' .. PATH .. '*)$', place)
    if socket and socket:sub(1, 2) ~= '//' then
        user.host, user.service, user.unix = 'unix/', socket, socket
        return user
    end
    for _, parse in ipairs{parse_unix, parse_host} do
        local fields = {login = user.login, password = user.password}
        local after = parse(text, place, fields)
        if after and parse_tail(text, after, fields) then return fields end
    end
    return nil
end

local function parse_local(text)
    if text:sub(1, 2) == '//' then return nil end
    if text:find('^/' .. PATH .. '*$') then return {host = 'unix/', service = text, unix = text} end
    local path, after = text:match('^(/?' .. PATH .. '*)()')
    local fields = {path = path ~= '' and path or nil}
    return parse_tail(text, after, fields) and fields or nil
end

local uri = {}

function uri.parse(text)
    if text == nil then error('Usage: uri.parse(string)') end
    if type(text) ~= 'string' then
        error(("bad argument #2 to 'uri_parse' (cannot convert '%s' to 'const char *')"):format(type(text)))
    end
    text = text:match('^%Z*')
    if text:find('^%d+$') then return {service = text} end
    if text == '' or text:find('%%[^%x%%]') or text:find('%%$') then return nil end
    if text:find('^[/?#]') then return parse_local(text) end
    local scheme = text:match('^(%a[%w+.%-]*):/')
    local fields
    if scheme and text:sub(#scheme + 1, #scheme + 3) == '://' then fields = parse_location(text, #scheme + 4, true) end
    fields = fields or parse_location(text, 1, false)
    if fields then fields.scheme = scheme end
    return fields
end

-- A field's text with what comes before and after it, or nothing.
local function part(uri, name, before, after)
    local value = uri[name]
    if value == nil then return '' end
    if type(value) ~= 'string' then error(("cannot convert '%s' to 'const char *'"):format(type(value))) end
    if value == '' then return '' end
    return before .. value .. after
end

-- The user, the host and the service, or nothing without a host.
local function format_host(uri, with_password)
    local host, login = part(uri, 'host', '', ''), part(uri, 'login', '', '')
    local service, password = part(uri, 'service', ':', ''), ''
    if with_password then password = part(uri, 'password', ':', '') end
    if host == '' then return '' end
    if login ~= '' then login = login .. password .. '@' end
    return login .. host .. service
end

function uri.format(uri, with_password)
    local scheme, host = part(uri, 'scheme', '', '://'), format_host(uri, with_password)
    return scheme .. host .. part(uri, 'path', '', '') .. part(uri, 'query', '?', '') .. part(uri, 'fragment', '#', '')
end

return uri
