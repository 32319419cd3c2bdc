-- Whether Tarantool would take the next string as one of a flow collection, and quote it.
--
-- libyaml writes the start of a collection when it knows two or three events more. Until then Tarantool looks at the
-- styles of the starts that wait, so it does not quote some strings near the beginning of a collection without a style
-- within a flow collection, and quotes some behind a flow collection that is a key.
local events = {}
events.__index = events

local WAITS_FOR = {array = 2, map = 3}

--   queue, first, last: events that wait
--   open: collections that were started, with `flow` and whether the first item was `entered`
--   flow: those of them that are flow collections
function events.new()
    return setmetatable({queue = {}, first = 1, last = 0, open = {}, flow = 0}, events)
end

-- Whether the first event has to wait for more.
local function must_wait(self)
    local level = 0
    local least = WAITS_FOR[self.queue[self.first].kind]
    if not least or self.last - self.first + 1 > least then return false end
    for place = self.first, self.last do
        local kind = self.queue[place].kind
        if kind == 'end' then level = level - 1 elseif kind ~= 'scalar' then level = level + 1 end
        if level == 0 then return false end
    end
    return true
end

local function process(self, event)
    local open = self.open
    local around = open[#open]
    if around and around.flow and not around.entered then
        around.entered = true
        self.flow = self.flow + 1
    end
    if event.kind == 'end' then
        open[#open] = nil
        if around.flow then self.flow = self.flow - 1 end
    elseif event.kind ~= 'scalar' then
        open[#open + 1] = {flow = event.flow or self.flow > 0, entered = false}
    end
end

-- Add an event: 'array' or 'map' with whether its style is flow, 'end' or 'scalar'.
function events:add(kind, flow)
    self.last = self.last + 1
    self.queue[self.last] = {kind = kind, flow = flow}
    while self.first <= self.last and not must_wait(self) do
        process(self, self.queue[self.first])
        self.queue[self.first] = nil
        self.first = self.first + 1
    end
end

function events:is_flow()
    if self.flow > 0 then return true end
    for place = self.first, self.last do
        if self.queue[place].flow then return true end
    end
    return false
end

return events
