-- Tarantool's module pwd, see https://www.tarantool.io/en/doc/2.6/reference/reference_lua/pwd/.
local _, host = ...

local pwd = {}

local function checked(key, what)
    if type(key) ~= 'string' and type(key) ~= 'number' then
        error(("Bad type of %s (expected 'string'/'number')"):format(what))
    end
    return key
end

local function members_of(name, ...)
    return name and name, {...}
end

local function group_of(id, ...)
    if id == nil then return nil end
    local name, members = members_of(...)
    return {id = id, name = name, members = members}
end

local function user_of(id, name, workdir, shell, group)
    if id == nil then return nil end
    return {id = id, name = name, workdir = workdir, shell = shell, group = group_of(host.group_find(group))}
end

-- The user of a name or a number, or of this process; nil if there is none.
function pwd.getpw(user)
    if user == nil then user = host.user_effective() end
    return user_of(host.user_find(checked(user, 'uid')))
end

-- The group of a name or a number, or of this process; nil if there is none.
function pwd.getgr(group)
    if group == nil then group = host.group_effective() end
    return group_of(host.group_find(checked(group, 'gid')))
end

function pwd.getpwall()
    local users = {}
    for _, id in ipairs{host.user_names()} do users[#users + 1] = pwd.getpw(id) end
    return users
end

function pwd.getgrall()
    local groups = {}
    for _, id in ipairs{host.group_names()} do groups[#groups + 1] = pwd.getgr(id) end
    return groups
end

return pwd
