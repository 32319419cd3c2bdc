-- Transactions of fibers, which end where a fiber waits.
local scheduler = require('internal.fibers.scheduler')
local functions = require('internal.box.functions')
local failure = require('internal.box.failure')

local TRANSACTION_YIELD, NO_TRANSACTION = 154, 114

local transactions = {}
local owner           -- the fiber that has begun the running transaction
local aborted = {}    -- fibers that have waited in theirs, as keys

setmetatable(aborted, {__mode = 'k'})

local function raise_aborted(fiber)
    aborted[fiber] = nil
    failure.raise(TRANSACTION_YIELD, 'Transaction has been aborted by a fiber yield')
end

function transactions.begin(options)
    if options ~= nil and type(options) ~= 'table' then
        failure.raise(1, 'Illegal parameters, options should be a table')
    end
    functions.begin()
    owner = scheduler.current()
    aborted[owner] = nil
end

function transactions.commit()
    local fiber = scheduler.current()
    if aborted[fiber] then raise_aborted(fiber) end
    owner = nil
    functions.commit()
end

function transactions.rollback()
    aborted[scheduler.current()] = nil
    owner = nil
    functions.rollback()
end

-- Undo the transaction that a fiber has left open at its end.
function transactions.finish(fiber)
    aborted[fiber] = nil
    if owner == fiber then
        owner = nil
        if functions.is_in_txn() then
            functions.rollback()
            fiber.has_left_transaction = true
        end
    end
end

-- The fiber begins to wait: its transaction is undone.
function transactions.interrupt(fiber)
    if owner == fiber then
        owner = nil
        if functions.is_in_txn() then
            functions.rollback()
            aborted[fiber] = true
        end
    end
end

function transactions.is_in_txn()
    return functions.is_in_txn() or aborted[scheduler.current()] ~= nil
end

function transactions.savepoint()
    if aborted[scheduler.current()] then raise_aborted(scheduler.current()) end
    if not functions.is_in_txn() then failure.raise(NO_TRANSACTION, 'No active transaction') end
    return {handle = functions.savepoint()}
end

function transactions.rollback_to_savepoint(savepoint)
    if type(savepoint) ~= 'table' or savepoint.handle == nil then
        error('Usage: box.rollback_to_savepoint(savepoint)', 2)
    end
    functions.rollback_to_savepoint(savepoint.handle)
end

local function on_end(name)
    return function(call, old)
        if not functions.is_in_txn() then
            error(('Usage inside a transaction: box.%s([function | nil, [function | nil]])'):format(name), 2)
        end
        return functions.ask(name, call, old)
    end
end
transactions.on_commit, transactions.on_rollback = on_end('on_commit'), on_end('on_rollback')

local function finished(ok, ...)
    if not ok then
        transactions.rollback()
        error((...), 0)
    end
    transactions.commit()
    return ...
end

function transactions.atomic(call, ...)
    transactions.begin()
    return finished(pcall(call, ...))
end

return transactions
