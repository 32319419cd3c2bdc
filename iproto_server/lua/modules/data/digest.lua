-- Tarantool's module digest: hash functions, checksums, Base64 and random bytes.
-- On purpose different: objects of murmur have no fields of C, and `urandom` refuses sizes that are no `int`.
local _, host = ...
local ffi = require('ffi')
local bit = require('bit')
local crypto = require('crypto')
local argument = require('internal.argument')
local murmur = require('internal.murmur')

local METHODS = {'md4', 'md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512'}
local PBKDF2_SIZE_MAX, PBKDF2_ITERATIONS = 128, 100000
local INT_MAX = 2147483647

local digest = {}

for _, method in ipairs(METHODS) do
    digest[method] = function(text) return crypto.digest[method](text) end
    digest[method .. '_hex'] = function(text)
        if type(text) ~= 'string' then error('Usage: digest.' .. method .. '_hex(string)') end
        return (crypto.digest[method](text):hex())
    end
end

local aes256cbc = crypto.cipher.aes256.cbc
digest.aes256cbc = {
    encrypt = function(text, key, iv) return aes256cbc.encrypt(text, key, iv) end,
    decrypt = function(text, key, iv) return aes256cbc.decrypt(text, key, iv) end,
}

-- CRC-32C, whose last inversion is left out

local CRC_BEGIN = 4294967295

local crc32_methods = {}
local crc32_mt = {__index = crc32_methods}

function crc32_methods.update(self, text)
    if type(text) ~= 'string' then error('Usage crc32:update(string)') end
    self.value = host.crc32c(self.value, text)
end

function crc32_methods.result(self) return self.value end
function crc32_methods.clear(self) self.value = CRC_BEGIN end
function crc32_methods.copy(self) return setmetatable({value = self.value}, crc32_mt) end

digest.crc32 = setmetatable({
    crc_begin = CRC_BEGIN,
    new = function() return setmetatable({value = CRC_BEGIN}, crc32_mt) end,
}, {
    __call = function(_, text)
        if type(text) ~= 'string' then error('Usage digest.crc32(string)') end
        return (host.crc32c(CRC_BEGIN, text))
    end,
})

-- The C type's value of a number; anything else is an error of the public function that calls this.
local function converted(ctype, value, place)
    local kind = type(value)
    if kind == 'boolean' then return ffi.cast(ctype, value and 1 or 0) end
    if kind ~= 'number' and kind ~= 'cdata' then
        argument.refuse(place, ("cannot convert '%s' to '%s'"):format(kind, ctype), 1)
    end
    return ffi.cast(ctype, value)
end

function digest.crc32_update(value, text)
    if type(text) ~= 'string' then error('Usage: digest.crc32_update(string)') end
    local start = tonumber(converted('unsigned int', tonumber(value), 1))
    return (host.crc32c(start, text))
end

digest.murmur = murmur

-- The consistent hash of the library Guava: which of several buckets a state belongs to.
function digest.guava(state, buckets)
    state = converted('uint64_t', state, 1)
    buckets = tonumber(converted('int', buckets, 2))
    local candidate = 0
    while true do
        state = state * 2862933555777941757ULL + 1ULL
        local fraction = (tonumber(bit.rshift(state, 33)) + 1) / 2147483648
        local following = math.floor((candidate + 1) / fraction)
        if not (following < buckets) then return candidate end
        candidate = following
    end
end

function digest.urandom(size)
    if size == nil then error('Usage: digest.urandom(len)') end
    if type(size) == 'string' and tonumber(size) then
        error("bad argument #2 to 'random_bytes' (cannot convert 'string' to 'uint64_t')")
    end
    local _ = size * 1 -- an error for anything but numbers
    if not (size >= 0 and size <= INT_MAX) then error('Usage: digest.urandom(len)') end
    return (host.random_bytes(math.floor(size)))
end

function digest.base64_encode(text, options)
    if type(text) ~= 'string' or options ~= nil and type(options) ~= 'table' then
        error('Usage: digest.base64_encode(string[, table])')
    end
    options = options or {}
    local urlsafe = options.urlsafe and true or false
    return (host.base64_encode(text, not (options.nopad or urlsafe), not (options.nowrap or urlsafe), urlsafe))
end

function digest.base64_decode(text)
    if type(text) ~= 'string' then error('Usage: digest.base64_decode(string)') end
    return (host.base64_decode(text))
end

-- As in Tarantool 2.6, the password and the salt end at their first byte 0.
function digest.pbkdf2(pass, salt, iters, digest_len)
    if type(pass) ~= 'string' or type(salt) ~= 'string' then
        error('Usage: digest.pbkdf2(pass, salt[,iters][,digest_len])')
    end
    iters, digest_len = iters or PBKDF2_ITERATIONS, digest_len or PBKDF2_SIZE_MAX
    if type(iters) ~= 'number' then error('iters must be a number') end
    if type(digest_len) ~= 'number' then error('digest_len must be a number') end
    if digest_len > PBKDF2_SIZE_MAX then error('too big digest size') end
    iters, digest_len = math.floor(iters), math.floor(digest_len)
    if not (iters >= 1 and iters <= INT_MAX and digest_len >= 0) then return nil end
    return (host.pbkdf2(pass:match('^%Z*'), salt:match('^%Z*'), iters, digest_len))
end

function digest.pbkdf2_hex(pass, salt, iters, digest_len)
    if type(pass) ~= 'string' or type(salt) ~= 'string' then error('Usage: digest.pbkdf2_hex(pass, salt)') end
    return string.hex(digest.pbkdf2(pass, salt, iters, digest_len))
end

return digest
