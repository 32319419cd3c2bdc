-- The parser of YAML texts: builds the values of documents from tokens.
local scanners = require('internal.yaml.scanner')
local serializer = require('internal.serial.serializer')
local resolve = require('internal.yaml.types')

local array_mt, map_mt = serializer.array_mt, serializer.map_mt
local setmetatable, rawset = setmetatable, rawset

local parser = {}
parser.__index = parser

-- Raise an error about a token, and about the start of what it is in.
local function fail(self, problem, token, context, start)
    self.scanner.cursor:fail(problem, token.line, token.column, context, start)
end

local function set(of)
    local found = {}
    for kind in of:gmatch('%S+') do found[kind] = true end
    return found
end

local NO_DOCUMENT = set 'version tag_directive document_start document_end stream_end'
local IMPLICIT_END = set 'version tag_directive document_start stream_end'
local NO_ENTRY = set 'block_entry block_end'
local NO_INDENTLESS_ENTRY = set 'block_entry key value block_end'
local NO_BLOCK_KEY = set 'key value block_end'
local NO_FLOW_KEY = set 'value flow_entry flow_mapping_end'
local NO_FLOW_VALUE = set 'flow_entry flow_mapping_end'
local NO_PAIR_KEY = set 'value flow_entry flow_sequence_end'
local NO_PAIR_VALUE = set 'flow_entry flow_sequence_end'

local EMPTY = ''

-- Collections ---------------------------------------------------------------------------------------------------------

local read_node

-- Take the token before a node; the node, or an empty text if a token of `without` comes.
local function read_after(self, without, in_block, indentless)
    self.scanner:take()
    if without[self.scanner:peek().kind] then return EMPTY end
    return read_node(self, in_block, indentless)
end

local function put(map, key, value)
    if key ~= key then serializer.fail('table index is NaN') end
    rawset(map, key, value)
end

local function read_block_sequence(self, array, start)
    local scanner, count = self.scanner, 0
    scanner:take()
    while true do
        local token = scanner:peek()
        if token.kind == 'block_end' then
            scanner:take()
            return
        end
        if token.kind ~= 'block_entry' then
            fail(self, "did not find expected '-' indicator", token, 'while parsing a block collection', start)
        end
        count = count + 1
        array[count] = read_after(self, NO_ENTRY, true, false)
    end
end

local function read_indentless_sequence(self, array)
    local count = 0
    while self.scanner:peek().kind == 'block_entry' do
        count = count + 1
        array[count] = read_after(self, NO_INDENTLESS_ENTRY, true, false)
    end
end

local function read_block_mapping(self, map, start)
    local scanner = self.scanner
    scanner:take()
    while true do
        local token = scanner:peek()
        if token.kind == 'block_end' then
            scanner:take()
            return
        end
        if token.kind ~= 'key' then
            fail(self, 'did not find expected key', token, 'while parsing a block mapping', start)
        end
        local key, value = read_after(self, NO_BLOCK_KEY, true, true), EMPTY
        if scanner:peek().kind == 'value' then value = read_after(self, NO_BLOCK_KEY, true, true) end
        put(map, key, value)
    end
end

-- A pair within a flow sequence, which is a map.
local function read_flow_pair(self)
    local scanner, map = self.scanner, {}
    if self.options.decode_save_metatables then setmetatable(map, map_mt) end
    local key, value = EMPTY, EMPTY
    scanner:take()
    if NO_PAIR_KEY[scanner:peek().kind] then
        scanner:take()
    else
        key = read_node(self, false, false)
    end
    if scanner:peek().kind == 'value' then value = read_after(self, NO_PAIR_VALUE, false, false) end
    put(map, key, value)
    return map
end

local function read_flow_sequence(self, array, start)
    local scanner, count = self.scanner, 0
    scanner:take()
    while true do
        local token = scanner:peek()
        if token.kind ~= 'flow_sequence_end' and count > 0 then
            if token.kind ~= 'flow_entry' then
                fail(self, "did not find expected ',' or ']'", token, 'while parsing a flow sequence', start)
            end
            scanner:take()
            token = scanner:peek()
        end
        if token.kind == 'flow_sequence_end' then
            scanner:take()
            return
        end
        count = count + 1
        array[count] = token.kind == 'key' and read_flow_pair(self) or read_node(self, false, false)
    end
end

local function read_flow_mapping(self, map, start)
    local scanner, is_first = self.scanner, true
    scanner:take()
    while true do
        local token = scanner:peek()
        if token.kind ~= 'flow_mapping_end' and not is_first then
            if token.kind ~= 'flow_entry' then
                fail(self, "did not find expected ',' or '}'", token, 'while parsing a flow mapping', start)
            end
            scanner:take()
            token = scanner:peek()
        end
        is_first = false
        if token.kind == 'flow_mapping_end' then
            scanner:take()
            return
        end
        local key, value
        if token.kind == 'key' then
            key, value = read_after(self, NO_FLOW_KEY, false, false), EMPTY
            if scanner:peek().kind == 'value' then value = read_after(self, NO_FLOW_VALUE, false, false) end
        else
            key, value = read_node(self, false, false), EMPTY
        end
        put(map, key, value)
    end
end

-- Nodes ---------------------------------------------------------------------------------------------------------------

local function resolve_tag(self, token, start)
    if token.handle == '' then return token.value end
    local prefix = self.prefixes[token.handle]
    if not prefix then fail(self, 'found undefined tag handle', token, 'while parsing a node', start) end
    return prefix .. token.value
end

-- Go over the anchor and the tag of a node. Returns these, and the token of the node.
local function read_properties(self, token)
    local scanner, anchor, tag = self.scanner, nil, nil
    local start = token
    while (token.kind == 'anchor' and not anchor) or (token.kind == 'tag' and not tag) do
        if token.kind == 'anchor' then anchor = token.value else tag = token end
        scanner:take()
        token = scanner:peek()
    end
    return anchor, tag and resolve_tag(self, tag, start), token, start
end

local READERS = {
    flow_sequence_start = {read_flow_sequence, true}, flow_mapping_start = {read_flow_mapping, false},
    block_sequence_start = {read_block_sequence, true}, block_mapping_start = {read_block_mapping, false},
}

-- What a node is. Returns 'alias' and its name; 'scalar', its text, its anchor, its tag and whether it is plain; or the
-- function that reads its collection with whether it is an array, nothing, its anchor and its first token.
local function node_kind(self, in_block, indentless)
    local scanner = self.scanner
    local token = scanner:peek()
    if token.kind == 'alias' then
        scanner:take()
        return 'alias', token.value
    end
    local anchor, tag, start
    anchor, tag, token, start = read_properties(self, token)
    if indentless and token.kind == 'block_entry' then return {read_indentless_sequence, true}, nil, anchor, token end
    if token.kind == 'scalar' then
        scanner:take()
        return 'scalar', token.value, anchor, tag, token.is_plain
    end
    local reader = READERS[token.kind]
    if reader and (in_block or token.kind:sub(1, 4) == 'flow') then return reader, nil, anchor, token end
    if anchor or tag then return 'scalar', '', anchor, tag, true end
    fail(self, 'did not find expected node content', token,
        in_block and 'while parsing a block node' or 'while parsing a flow node', start)
end

local function build(self, kind, value, anchor, start, is_plain)
    if kind == 'scalar' then
        local scalar, has_anchor = resolve(value, start, is_plain, self.options)
        if anchor and has_anchor then self.anchors[anchor] = scalar end
        return scalar
    end
    if kind == 'alias' then
        local found = self.anchors[value]
        if found == nil then error('invalid reference: ' .. value, 0) end
        return found
    end
    local collection = {}
    if anchor then self.anchors[anchor] = collection end
    kind[1](self, collection, start)
    -- The metatable notices new keys, so it comes last.
    if self.options.decode_save_metatables then setmetatable(collection, kind[2] and array_mt or map_mt) end
    return collection
end

function read_node(self, in_block, indentless)
    return (build(self, node_kind(self, in_block, indentless)))
end

local function root_kind(self, is_implicit)
    if not is_implicit and NO_DOCUMENT[self.scanner:peek().kind] then return 'scalar', '', nil, nil, false end
    return node_kind(self, true, false)
end

-- The node of a document. Its own errors have no place.
local function read_root(self, is_implicit)
    local ok, kind, value, anchor, start, is_plain = pcall(root_kind, self, is_implicit)
    if not ok then serializer.fail('unexpected END event') end
    return build(self, kind, value, anchor, start, is_plain)
end

-- Documents -----------------------------------------------------------------------------------------------------------

local function read_directives(self)
    local scanner, version = self.scanner, nil
    self.prefixes = {}
    self.tags = {}
    local token = scanner:peek()
    while token.kind == 'version' or token.kind == 'tag_directive' do
        if token.kind == 'version' then
            if version then fail(self, 'found duplicate %YAML directive', token) end
            if token.major ~= 1 or (token.minor ~= 1 and token.minor ~= 2) then
                fail(self, 'found incompatible YAML document', token)
            end
            version = token
        else
            if self.prefixes[token.handle] then fail(self, 'found duplicate %TAG directive', token) end
            self.prefixes[token.handle] = token.prefix
            self.tags[#self.tags + 1] = token
        end
        scanner:take()
        token = scanner:peek()
    end
    self.prefixes['!'] = self.prefixes['!'] or '!'
    self.prefixes['!!'] = self.prefixes['!!'] or 'tag:yaml.org,2002:'
end

-- Begin the next document. Returns whether there is one, and whether its text begins without `---`.
function parser:begin_document()
    local scanner = self.scanner
    local is_first = scanner.cursor.documents == 0
    local token = scanner:peek()
    while not is_first and token.kind == 'document_end' do
        scanner:take()
        token = scanner:peek()
    end
    if token.kind == 'stream_end' then return false end
    self.anchors = {}
    local is_implicit = is_first and not IMPLICIT_END[token.kind]
    read_directives(self)
    token = scanner:peek()
    if not is_implicit then
        if token.kind ~= 'document_start' then fail(self, 'did not find expected <document start>', token) end
        scanner:take()
    end
    scanner.cursor.documents = scanner.cursor.documents + 1
    return true, is_implicit
end

-- Read the document that was begun. Returns its value.
function parser:read_document(is_implicit)
    local scanner, value = self.scanner, read_root(self, is_implicit)
    if scanner:peek().kind == 'document_end' then scanner:take() end
    return value
end

function parser.new(text, options)
    return setmetatable({
        scanner = scanners.new(text), options = options, prefixes = {}, anchors = {}, tags = {},
    }, parser)
end

return parser
