-- The modules of Tarantool 2.6 that this server does not have. `require` asks for them last, so that modules of users
-- may have their names.
local MISSING = {}
for name in ([[
    box.backup buffer error help help.en_US http.client jit.bc jit.bcsave jit.dis_x64 jit.dis_x86
    jit.dump jit.p jit.v jit.vmdef jit.zone key_def merger msgpackffi net.box.lib pickle popen serpent
    swim title xlog
]]):gmatch('%S+') do
    MISSING[name] = true
end

-- The error of `require` for one of them; nil for other names.
return function(name)
    if MISSING[name] then
        return ("module '%s' not found: Tarantool has it, this server does not; docs/LUA.md lists the modules there are")
            :format(name)
    end
end
