-- Bytes that have been received and not read yet. Their places are absolute: a search goes on where it has ended.
local ffi = require('ffi')

ffi.cdef[[
void *iproto_memmem(const void *text, size_t size, const void *part, size_t part_size) __asm__("memmem");
void *iproto_memmove(void *target, const void *source, size_t size) __asm__("memmove");
]]

local SIZE_MIN = 4096

local library = ffi.C
local memory_t = ffi.typeof('uint8_t[?]')
local byte_pointer = ffi.typeof('const uint8_t *')

local methods = {}
local metatable = {__index = methods}

local function new()
    return setmetatable({size = 0, first = 0, last = 0, taken = 0}, metatable)
end

function methods:count()
    return self.last - self.first
end

-- Make room for more bytes. Returns where they go; `add` says how many there are.
function methods:reserve(room)
    if self.size - self.last < room then
        local count = self.last - self.first
        if self.size < count + room or self.first < self.size / 2 then
            self.size = math.max(2 * self.size, count + room, SIZE_MIN)
            local memory = memory_t(self.size)
            if count > 0 then ffi.copy(memory, self.memory + self.first, count) end
            self.memory = memory
        else
            library.iproto_memmove(self.memory, self.memory + self.first, count)
        end
        self.first, self.last = 0, count
    end
    return self.memory + self.last
end

function methods:add(count)
    self.last = self.last + count
end

-- Take bytes from the front.
function methods:take(count)
    count = math.min(count, self:count())
    if count == 0 then return '' end
    local bytes = ffi.string(self.memory + self.first, count)
    self.first, self.taken = self.first + count, self.taken + count
    if self.first == self.last then
        self.first, self.last = 0, 0
        if self.size > 16 * SIZE_MIN then self.memory, self.size = nil, 0 end
    end
    return bytes
end

-- How many bytes there are up to the end of a text, whose search starts at an absolute place; nil if it is not there.
function methods:find(text, start)
    if #text == 0 then return 0 end
    local offset = math.max(start - self.taken, 0)
    if offset >= self:count() then return nil end
    local from = self.memory + self.first
    local found = library.iproto_memmem(from + offset, self:count() - offset, text, #text)
    if found == nil then return nil end
    return tonumber(ffi.cast(byte_pointer, found) - from) + #text
end

-- The absolute place behind the last byte.
function methods:end_place()
    return self.taken + self:count()
end

return {new = new}
