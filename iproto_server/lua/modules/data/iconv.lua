-- Tarantool's module iconv, on the function of the system's C library.
local ffi = require('ffi')
local errno = require('errno')

-- By names of its own, so that scripts may declare C's as they like.
ffi.cdef[[
struct iconv;
struct iconv *iproto_server_iconv_open(const char *, const char *) __asm__("iconv_open");
void iproto_server_iconv_close(struct iconv *) __asm__("iconv_close");
size_t iproto_server_iconv(struct iconv *, const char **, size_t *, char **, size_t *) __asm__("iconv");
]]

local C = ffi.C
local INVALID = ffi.cast('struct iconv *', -1)
local FAILED = ffi.cast('size_t', -1)
local BUFFER_SIZE = 4096

local MESSAGES = {
    [errno.EILSEQ] = 'Incomplete multibyte sequence',
    [errno.EINVAL] = 'Invalid multibyte sequence',
}

local buffer = ffi.new('char [?]', BUFFER_SIZE)

-- Convert a text that is complete. An error leaves the converter as it was at the start.
local function convert(converter, data)
    local size = data:len()
    local input, input_left = ffi.new('const char *[1]'), ffi.new('size_t [1]', size)
    local output, output_left = ffi.new('char *[1]'), ffi.new('size_t [1]')
    local parts = {}
    input[0] = data
    while input_left[0] > 0 do
        output[0], output_left[0] = buffer, BUFFER_SIZE
        local result = C.iproto_server_iconv(converter, input, input_left, output, output_left)
        local number = ffi.errno()
        if result == FAILED and number ~= errno.E2BIG then
            C.iproto_server_iconv(converter, nil, nil, nil, nil)
            error(MESSAGES[number] or 'Unknown conversion error: ' .. errno.strerror(number))
        end
        parts[#parts + 1] = ffi.string(buffer, BUFFER_SIZE - tonumber(output_left[0]))
    end
    C.iproto_server_iconv(converter, nil, nil, nil, nil)
    return table.concat(parts)
end

ffi.metatype('struct iconv', {
    __call = convert,
    __tostring = function(converter)
        return 'iconv: ' .. tostring(ffi.cast('void *', converter)):match('0x%x+')
    end,
})

local function new(to, from)
    if type(to) ~= 'string' or type(from) ~= 'string' then
        error('Usage: iconv.new("CP1251", "KOI8-R")')
    end
    local converter = C.iproto_server_iconv_open(to, from)
    if converter == INVALID then error('iconv: ' .. errno.strerror(ffi.errno())) end
    return ffi.gc(converter, C.iproto_server_iconv_close)
end

return {new = new}
