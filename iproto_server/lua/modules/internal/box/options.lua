-- Options of Tarantool's `box.cfg`: their types and defaults, and what of them Python has to know.
--
-- Source: Tarantool reference, "Configuration parameters".
local failure = require('internal.box.failure')
local uuid = require('uuid')

local WRONG, NOT_DYNAMIC = 59, 58

-- Name to the type, and the default if there is one.
local OPTIONS = {
    background = {'boolean', false}, checkpoint_count = {'number', 2}, checkpoint_interval = {'number', 3600},
    checkpoint_wal_threshold = {'number', 1e18}, coredump = {'boolean', false}, custom_proc_title = {'string'},
    feedback_enabled = {'boolean', true}, feedback_host = {'string', 'https://feedback.tarantool.io'},
    feedback_interval = {'number', 3600}, force_recovery = {'boolean', false}, hot_standby = {'boolean', false},
    instance_uuid = {'string'}, io_collect_interval = {'number'}, listen = {'string, number'}, log = {'module'},
    log_format = {'module', 'plain'}, log_level = {'module', 5}, log_nonblock = {'module'}, memtx_dir = {'string', '.'},
    memtx_max_tuple_size = {'number', 1048576}, memtx_memory = {'number', 268435456}, memtx_min_tuple_size = {'number', 16},
    net_msg_max = {'number', 768}, pid_file = {'string'}, read_only = {'boolean', false}, readahead = {'number', 16320},
    replicaset_uuid = {'string'}, replication = {'string, number, table'}, replication_anon = {'boolean', false},
    replication_connect_quorum = {'number'}, replication_connect_timeout = {'number', 30},
    replication_skip_conflict = {'boolean', false}, replication_sync_lag = {'number', 10},
    replication_sync_timeout = {'number', 300}, replication_synchro_quorum = {'number', 1},
    replication_synchro_timeout = {'number', 5}, replication_timeout = {'number', 1}, slab_alloc_factor = {'number', 1.05},
    snap_io_rate_limit = {'number'}, sql_cache_size = {'number', 5242880}, strip_core = {'boolean', true},
    too_long_threshold = {'number', 0.5}, username = {'string'}, vinyl_bloom_fpr = {'number', 0.05},
    vinyl_cache = {'number', 134217728}, vinyl_dir = {'string', '.'}, vinyl_max_tuple_size = {'number', 1048576},
    vinyl_memory = {'number', 134217728}, vinyl_page_size = {'number', 8192}, vinyl_range_size = {'number'},
    vinyl_read_threads = {'number', 1}, vinyl_run_count_per_level = {'number', 2}, vinyl_run_size_ratio = {'number', 3.5},
    vinyl_timeout = {'number', 60}, vinyl_write_threads = {'number', 4}, wal_dir = {'string', '.'},
    wal_dir_rescan_delay = {'number', 2}, wal_max_size = {'number', 268435456}, wal_mode = {'string', 'write'},
    work_dir = {'string'}, worker_pool_threads = {'number', 4},
}

-- Options that change nothing here: whether they can be set again.
local WITHOUT_EFFECT = {
    background = false, coredump = false, custom_proc_title = true, feedback_enabled = true, feedback_host = true,
    feedback_interval = true, hot_standby = false, io_collect_interval = true, memtx_max_tuple_size = true,
    memtx_min_tuple_size = false, pid_file = false, readahead = true, replicaset_uuid = false, replication = true,
    replication_anon = true, replication_connect_quorum = true, replication_connect_timeout = true,
    replication_skip_conflict = true, replication_sync_lag = true, replication_sync_timeout = true,
    replication_synchro_quorum = true, replication_synchro_timeout = true, replication_timeout = true,
    slab_alloc_factor = false, sql_cache_size = true, strip_core = false, username = false, vinyl_bloom_fpr = false,
    vinyl_cache = true, vinyl_dir = false, vinyl_max_tuple_size = true, vinyl_memory = true, vinyl_page_size = false,
    vinyl_range_size = false, vinyl_read_threads = false, vinyl_run_count_per_level = false, vinyl_run_size_ratio = false,
    vinyl_timeout = true, vinyl_write_threads = false, wal_dir_rescan_delay = true, worker_pool_threads = true,
}

local LEVELS = {fatal = 0, syserror = 1, error = 2, crit = 3, warn = 4, info = 5, verbose = 6, debug = 7}

local options = {}

local function wrong(name, reason)
    failure.raise(WRONG, ("Incorrect value for option '%s': %s"):format(name, reason))
end

local function check_type(name, value)
    local allowed = OPTIONS[name] and OPTIONS[name][1]
    if not allowed or allowed == 'module' then return end
    if allowed:find(',', 1, true) then
        if not allowed:find(type(value), 1, true) then wrong(name, 'should be one of types ' .. allowed) end
    elseif type(value) ~= allowed then
        wrong(name, 'should be of type ' .. allowed)
    end
end

local NIL_UUID = '00000000-0000-0000-0000-000000000000'

-- The options to use, of those that were given: without empty texts, which stand for defaults. Raises an error for values
-- of wrong types.
function options.of(given)
    local found = {}
    for name, value in pairs(given) do
        if value ~= '' then
            check_type(name, value)
            found[name] = value
        end
    end
    return found
end

-- Raise an error if an option is no UUID although it has to be one.
function options.check_identities(found)
    for _, name in ipairs{'instance_uuid', 'replicaset_uuid'} do
        local value = found[name]
        if value ~= nil and not uuid.fromstr(value) then wrong(name, value) end
        if value == NIL_UUID then wrong(name, 'nil UUID is reserved') end
    end
end

-- Those of the options that Python has to know.
function options.with_effect(found)
    local others = {}
    for name, value in pairs(found) do
        if WITHOUT_EFFECT[name] == nil then others[name] = value end
    end
    return others
end

-- Raise an error if one of the options cannot be set again. `current` are their values now, and `others` the options that
-- have an effect but keep it.
function options.check_dynamic(found, current, others)
    for name, value in pairs(found) do
        if (WITHOUT_EFFECT[name] == false or others[name]) and value ~= (others[name] or current[name]) then
            failure.raise(NOT_DYNAMIC, ("Can't set option '%s' dynamically"):format(name))
        end
    end
end

-- The fields of `box.cfg` for options: numbers of ports are texts.
function options.shown(found)
    local fields = {}
    for name, value in pairs(found) do
        if name == 'listen' then value = tostring(value) end
        fields[name] = value
    end
    return fields
end

-- The fields of `box.cfg` of what Python says. Options of this server that Tarantool does not have are left out.
function options.configured(values)
    local fields = {}
    for name, value in pairs(values) do
        if OPTIONS[name] then fields[name] = type(value) == 'cdata' and tonumber(value) or value end
    end
    fields.log_level = LEVELS[fields.log_level] or fields.log_level
    if fields.work_dir == '.' then fields.work_dir = nil end
    fields.listen = nil -- as it was given
    return fields
end

-- The default of an option.
function options.default(name)
    return OPTIONS[name] and OPTIONS[name][2]
end

-- The fields of `box.cfg` of which nothing was given.
function options.defaults()
    local fields = {}
    for name, option in pairs(OPTIONS) do fields[name] = option[2] end
    return fields
end

return options
