-- Tarantool's module tarantool: the version, the build and the process.
-- On purpose different: the build describes Python and LuaJIT.
local _, host = ...

return {
    version = host.announced_version(),
    package = 'Tarantool',
    build = {
        target = host.platform(),
        options = '',
        flags = '',
        compiler = host.compiler(),
        mod_format = 'so',
    },
    pid = host.process_id,
    uptime = host.process_uptime,
}
