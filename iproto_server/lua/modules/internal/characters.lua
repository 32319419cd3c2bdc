-- Characters of UTF-8.
local byte, char = string.byte, string.char
local band, bor, rshift, tobit = bit.band, bit.bor, bit.rshift, bit.tobit

local characters = {}

-- Smallest and largest second byte, by the first byte of a sequence, where they are not 80 and BF.
local SECOND_MINIMUM = {[0xE0] = 0xA0, [0xF0] = 0x90}
local SECOND_MAXIMUM = {[0xED] = 0x9F, [0xF4] = 0x8F}

-- The place after a character, and its code; without a code if it is invalid.
function characters.step(text, place)
    local first = byte(text, place)
    if first < 0x80 then return place + 1, first end
    if first < 0xC2 or first > 0xF4 then return place + 1 end
    local more = first < 0xE0 and 1 or first < 0xF0 and 2 or 3
    local code = band(first, first < 0xE0 and 0x1F or first < 0xF0 and 0x0F or 0x07)
    local minimum, maximum = SECOND_MINIMUM[first] or 0x80, SECOND_MAXIMUM[first] or 0xBF
    for distance = 1, more do
        local following = byte(text, place + distance)
        if not following or following < minimum or following > maximum then return place + distance end
        code, minimum, maximum = code * 64 + band(following, 0x3F), 0x80, 0xBF
    end
    return place + more + 1, code
end

-- The character of a code, of which 32 bits count.
function characters.encoded(code)
    code = tobit(code)
    if code >= 0 and code < 0x80 then return char(code) end
    local last = bor(0x80, band(code, 0x3F))
    if code >= 0 and code < 0x800 then return char(bor(0xC0, rshift(code, 6)), last) end
    local third = bor(0x80, band(rshift(code, 6), 0x3F))
    if code >= 0 and code < 0x10000 then return char(bor(0xE0, rshift(code, 12)), third, last) end
    local second = bor(0x80, band(rshift(code, 12), 0x3F))
    return char(band(bor(0xF0, rshift(code, 18)), 0xFF), second, third, last)
end

return characters
