-- Tarantool's module crypto: digests, HMACs and ciphers.
-- On purpose different: objects of digests keep their text until the result, and have no fields of C.
local _, host = ...
local ffi = require('ffi')
local errors = require('internal.box.values.error')

local METHODS = {'md4', 'md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'ripemd160'}

local function hex(text) return text:hex() end

-- Digests and HMACs collect their text.
local function collect(self, input, what)
    if self.parts == nil then error(what .. ' not initialized', 3) end
    self.parts[#self.parts + 1] = input
end

local function collected(self, what)
    if self.parts == nil then error(what .. ' not initialized', 3) end
    local text = table.concat(self.parts)
    self.parts = nil
    return text
end

local digest_methods = {
    init = function(self) self.parts = {} end,
    free = function(self) self.parts = nil end,
    update = function(self, input)
        local parts = self.parts
        if parts ~= nil then input:len() end
        collect(self, input, 'Digest')
    end,
    result = function(self)
        local method = self.method
        return host.digest(method, collected(self, 'Digest'))
    end,
}

local hmac_methods = {
    init = function(self, key)
        if key == nil then error('Key should be specified for HMAC operations', 2) end
        key:len()
        self.key, self.parts = key, {}
    end,
    free = function(self) self.parts = nil end,
    update = function(self, input)
        local parts = self.parts
        if parts ~= nil then input:len() end
        collect(self, input, 'HMAC')
    end,
    result = function(self)
        local method = self.method
        return host.keyed_digest(method, self.key, collected(self, 'HMAC'))
    end,
}

local function new_digest(method)
    return setmetatable({method = method, parts = {}}, {__index = digest_methods})
end

local function new_hmac(method, key)
    if key == nil then error('Key should be specified for HMAC operations', 3) end
    key:len()
    return setmetatable({method = method, key = key, parts = {}}, {__index = hmac_methods})
end

-- A table that raises an error for other names.
local function only(values, message)
    return setmetatable(values, {__index = function(_, name) error(message:format(name), 2) end})
end

local digests, hmacs = {}, {}
for _, method in ipairs(METHODS) do
    digests[method] = setmetatable({new = function() return new_digest(method) end}, {
        __call = function(_, text)
            if type(text) ~= 'string' then error('Usage: digest.' .. method .. '(string)') end
            return (host.digest(method, text))
        end,
    })

    hmacs[method] = setmetatable({
        new = function(key)
            local hmac = new_hmac(method, key)
            return hmac
        end,
    }, {
        __call = function(_, key, text)
            if type(text) ~= 'string' then error('Usage: hmac.' .. method .. '(key, string)') end
            local hmac = new_hmac(method, key)
            hmac:update(text)
            return hmac:result()
        end,
    })

    hmacs[method .. '_hex'] = function(key, text)
        if type(text) ~= 'string' then error('Usage: hmac.' .. method .. '_hex(key, string)') end
        return hex(hmacs[method](key, text))
    end
end

-- Ciphers

local ALGORITHMS = { -- OpenSSL's names, and the sizes of keys and blocks
    none = {openssl = nil, number = 0, key = 0, block = 0},
    aes128 = {openssl = 'AES-128-', number = 1, key = 16, block = 16},
    aes192 = {openssl = 'AES-192-', number = 2, key = 24, block = 16},
    aes256 = {openssl = 'AES-256-', number = 3, key = 32, block = 16},
    des = {openssl = 'DES-', number = 4, key = 8, block = 8},
}
local MODES = {ecb = 0, cbc = 1, cfb = 2, ofb = 3}

local function fail(message) error(errors.new_error(0, message, 'CryptoError'), 0) end

local free_t = ffi.typeof('void (*)(void *)') -- each declaration of it would be one more type

-- The context of a running cipher. OpenSSL frees it when nobody knows it any more, even when Python has ended.
local function owned(address)
    return ffi.gc(ffi.cast('void *', address), ffi.cast(free_t, host.cipher_free_address()))
end

local function address_of(context) return tonumber(ffi.cast('uintptr_t', context)) end

local cipher_methods = {}

function cipher_methods.init(self, key, iv)
    self.key, self.iv = key or self.key, iv or self.iv
    if self.key == nil or self.iv == nil then return end
    local algorithm, iv_size = self.algorithm, self.iv_size
    if #self.key ~= algorithm.key then
        error(('key size expected %d, got %d'):format(algorithm.key, #self.key), 0)
    end
    if #self.iv ~= iv_size then error(('IV size expected %d, got %d'):format(iv_size, #self.iv), 0) end
    if algorithm.openssl then
        local address, message = host.cipher_begin(
            algorithm.openssl .. self.mode:upper(), self.key, self.iv, self.encrypts)
        if not address then fail(message) end
        self.context = owned(address)
    end
    self.is_initialized = true
end

function cipher_methods.update(self, text)
    if not self.is_initialized then error('Cipher not initialized', 2) end
    if type(text) ~= 'string' then error('Usage: cipher:update(string)') end
    if not self.context then return text end
    return (host.cipher_update(address_of(self.context), text))
end

function cipher_methods.result(self)
    if not self.is_initialized then error('Cipher not initialized', 2) end
    self.is_initialized = false
    if not self.context then return '' end
    local rest, message = host.cipher_end(address_of(self.context))
    self.context = nil
    if not rest then fail(message) end
    return rest
end

function cipher_methods.free(self) self.is_initialized, self.context = false, nil end

local function new_cipher(algorithm, mode, encrypts, key, iv)
    local cipher = setmetatable({
        algorithm = algorithm,
        mode = mode,
        iv_size = mode == 'ecb' and 0 or algorithm.block,
        encrypts = encrypts,
        is_initialized = false,
    }, {__index = cipher_methods})
    cipher:init(key, iv)
    return cipher
end

local function direction(algorithm, mode, encrypts)
    return setmetatable({
        new = function(key, iv) return new_cipher(algorithm, mode, encrypts, key, iv) end,
    }, {
        __call = function(_, text, key, iv)
            local cipher = new_cipher(algorithm, mode, encrypts, key, iv)
            local first = cipher:update(text)
            return first .. cipher:result()
        end,
    })
end

local ciphers, algorithm_numbers = {}, {}
for name, algorithm in pairs(ALGORITHMS) do
    algorithm_numbers[name] = algorithm.number
    local modes = {}
    for mode in pairs(MODES) do
        modes[mode] = {encrypt = direction(algorithm, mode, true), decrypt = direction(algorithm, mode, false)}
    end
    ciphers[name] = setmetatable(modes, {
        __index = function(_, mode) error('Cipher mode ' .. mode .. ' is not supported') end,
    })
end

local public = {
    digest = only(digests, 'Digest method "%s" is not supported'),
    hmac = only(hmacs, 'HMAC method "%s" is not supported'),
    cipher = only(ciphers, 'Cipher method "%s" is not supported'),
}

return setmetatable({cipher_algo = algorithm_numbers, cipher_mode = MODES}, {
    __index = public,
    __serialize = function() return public end,
})
