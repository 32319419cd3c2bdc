"""Snippets that return what the module tap writes."""

from __future__ import annotations

from typing import Final

WITH_OUTPUT: Final = """
if not pcall(require, 'yaml') then
    local yaml = {cfg = function() end, encode = function() return '---\\na: 1\\n...\\n' end}
    package.loaded.yaml = {new = function() return yaml end}
end
local tap, parts, write = require('tap'), {}, io.write
io.write = function(...)
    for place = 1, select('#', ...) do parts[#parts + 1] = tostring((select(place, ...))) end
end
local results = {pcall(function()
    local t = tap.test('name') t.trace = false
    %s
end)}
io.write = write
local lines, diagnosis = {}, false
for line in table.concat(parts):gmatch('([^\\n]*)\\n') do
    if line:match('^ *%%-%%-%%-$') then diagnosis = true end
    if not diagnosis then lines[#lines + 1] = line end
    if line:match('^ *%%.%%.%%.$') then diagnosis = false end
end
return lines, unpack(results)
"""
"""Returns the lines that the body writes, without diagnoses, and what it returns.

Without a module yaml, a stand-in writes diagnoses.
"""
