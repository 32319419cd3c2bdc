-- Fibers act as the sessions in which they began to wait.
local scheduler = require('internal.fibers.scheduler')
local functions = require('internal.box.functions')
local storages = require('internal.box.session.storages')
local transactions = require('internal.box.transactions')

-- Whether the code that runs acts as the session of a client.
scheduler.is_in_session = false

function scheduler.on_suspend(fiber)
    transactions.interrupt(fiber)
    if scheduler.is_in_session then
        local handle, id = functions.session()
        fiber.session, fiber.session_storage = handle, storages.of(id)
    end
end

scheduler.on_finish = transactions.finish

function scheduler.on_resume(fiber)
    if fiber.session then
        functions.use_session(fiber.session)
        scheduler.is_in_session = true
    end
    transactions.resume(fiber)
end

function scheduler.on_pause()
    if scheduler.is_in_session then
        functions.leave_session()
        scheduler.is_in_session = false
    end
end
