-- The hash function MurmurHash3 with 32 bits, whole or by parts.
local band, bxor, lshift, rshift, rol, tobit = bit.band, bit.bxor, bit.lshift, bit.rshift, bit.rol, bit.tobit
local byte = string.byte

local DEFAULT_SEED = 13

-- The product of 32-bit numbers, modulo 2^32.
local function times(left, right)
    local low, high = band(left, 0xFFFF), rshift(left, 16)
    return tobit(low * right + lshift(tobit(high * band(right, 0xFFFF)), 16))
end

local FIRST, SECOND = 0xCC9E2D51, 0x1B873593

local function mixed(block) return times(rol(times(block, FIRST), 15), SECOND) end

-- The state after the whole blocks of a text, and the place of the first byte that is left.
local function add_blocks(state, text)
    local whole = #text - #text % 4
    for place = 1, whole, 4 do
        local first, second, third, fourth = byte(text, place, place + 3)
        local block = tobit(first + second * 0x100 + third * 0x10000 + fourth * 0x1000000)
        state = tobit(rol(bxor(state, mixed(block)), 13) * 5 + 0xE6546B64)
    end
    return state, whole + 1
end

local function finished(state, rest, size)
    local block = 0
    for place = #rest, 1, -1 do block = block * 0x100 + byte(rest, place) end
    state = bxor(state, mixed(tobit(block)), size)
    state = times(bxor(state, rshift(state, 16)), 0x85EBCA6B)
    state = times(bxor(state, rshift(state, 13)), 0xC2B2AE35)
    state = bxor(state, rshift(state, 16))
    return state % 4294967296
end

local methods = {}
local mt = {__index = methods}

local function new(options)
    local opts = options or {}
    local seed = opts.seed or DEFAULT_SEED
    if type(seed) ~= 'number' then error(("cannot convert '%s' to 'int [1]'"):format(type(seed))) end
    return setmetatable({default_seed = seed, state = tobit(seed), rest = '', total_length = 0}, mt)
end

function methods.update(self, text)
    if type(text) ~= 'string' then error('Usage: murhash:update(string)') end
    local all, place = self.rest .. text, nil
    self.state, place = add_blocks(self.state, all)
    self.rest, self.total_length = all:sub(place), self.total_length + #text
end

function methods.result(self) return finished(self.state, self.rest, self.total_length) end

function methods.clear(self) self.state, self.rest, self.total_length = tobit(self.default_seed), '', 0 end

function methods.copy(self)
    local copy = new{seed = self.default_seed}
    copy.state, copy.rest, copy.total_length = self.state, self.rest, self.total_length
    return copy
end

return setmetatable({default_seed = DEFAULT_SEED, new = function(opts) return new(opts) end}, {
    __call = function(_, text)
        if type(text) ~= 'string' then error('Usage: digest.murhash(string)') end
        local murmur = new()
        murmur:update(text)
        return murmur:result()
    end,
})
