-- `string.gsub`, whose functions may let their fiber wait, and may call it again as deeply as other functions.
local argument = require('internal.argument')
local find, sub, gsub = string.find, string.sub, string.gsub

-- What stands in place of a match: what the function returns for its captures.
local function replaced(call, match, ...)
    local result
    if select('#', ...) > 0 then result = call(...) else result = call(match) end
    if not result then return match end
    local kind = type(result)
    if kind ~= 'string' and kind ~= 'number' then
        error('invalid replacement value (a ' .. kind .. ')', 5)
    end
    return result
end

-- The replacement of the match at a place, and what comes before it; the places of the match; nil if there is none.
local function next_part(text, place, call, ok, first, last, ...)
    if not ok then error(first, 4) end -- a malformed pattern
    if not first then return nil end
    return sub(text, place, first - 1), replaced(call, sub(text, first, last), ...), first, last
end

local function replace_all(text, pattern, call, limit)
    local is_anchored = sub(pattern, 1, 1) == '^'
    local parts, count, replacements, place = {}, 0, 0, 1
    while replacements < limit do
        local before, replacement, first, last = next_part(text, place, call, pcall(find, text, pattern, place))
        if not before then break end
        parts[count + 1], parts[count + 2] = before, replacement
        count, replacements = count + 2, replacements + 1
        if last >= first then
            place = last + 1
        else -- an empty match: the next character stays
            place = first + 1
            count = count + 1
            parts[count] = sub(text, first, first)
            if first > #text then break end
        end
        if is_anchored then break end
    end
    parts[count + 1] = sub(text, place)
    return table.concat(parts), replacements
end

return function(...)
    local text, pattern, call, limit = ...
    if type(call) ~= 'function' then return gsub(...) end
    text, pattern = argument.text(text, 1), argument.text(pattern, 2)
    limit = limit == nil and math.huge or argument.integer(limit, 4)
    local result, replacements = replace_all(text, pattern, call, limit)
    return result, replacements
end
