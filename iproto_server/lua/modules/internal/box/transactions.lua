-- Transactions of fibers. One whose fiber waits is undone; what the fiber does in it then is undone at its end.
local scheduler = require('internal.fibers.scheduler')
local functions = require('internal.box.functions')
local failure = require('internal.box.failure')

local TRANSACTION_YIELD, NO_TRANSACTION = 154, 114

local transactions = {}
local owner           -- the fiber that has begun the running transaction
local aborted = {}    -- fibers that have waited in theirs, as keys
local number = 0      -- of the latest transaction

setmetatable(aborted, {__mode = 'k'})

local function begin(fiber)
    functions.begin()
    owner, number = fiber, number + 1
end

function transactions.begin()
    begin(scheduler.current())
end

function transactions.commit()
    local fiber = scheduler.current()
    if aborted[fiber] then
        transactions.rollback()
        failure.raise(TRANSACTION_YIELD, 'Transaction has been aborted by a fiber yield')
    end
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

-- The fiber goes on in another transaction, which can only be undone.
function transactions.resume(fiber)
    if aborted[fiber] then begin(fiber) end
end

transactions.is_in_txn = functions.is_in_txn

function transactions.savepoint()
    if not functions.is_in_txn() then failure.raise(NO_TRANSACTION, 'No active transaction') end
    return {handle = functions.savepoint(), number = number}
end

function transactions.rollback_to_savepoint(savepoint)
    if type(savepoint) ~= 'table' or savepoint.handle == nil then
        error('Usage: box.rollback_to_savepoint(savepoint)', 2)
    end
    local fiber = scheduler.current()
    if aborted[fiber] and savepoint.number < number then -- it was made before the fiber waited
        functions.rollback()
        begin(fiber)
    else
        functions.rollback_to_savepoint(savepoint.handle)
    end
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
