-- `package.reload` for a real Tarantool, which needs a rock for it.
local file = debug.getinfo(3, 'S').source:match('^@(.+)$')
local before = {['package.reload'] = true}
for name in pairs(package.loaded) do before[name] = true end

local reload = setmetatable({count = 1}, {
    __call = function(self)
        self.count = self.count + 1
        for name in pairs(package.loaded) do
            if not before[name] then package.loaded[name] = nil end
        end
        dofile(file)
    end,
})
package.reload = reload
return reload
