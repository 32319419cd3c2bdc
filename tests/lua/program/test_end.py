"""When a process ends, and with which status: as Tarantool does."""

from __future__ import annotations

import pytest

from tests.lua.program.scripts import Program, comparable

FIBERS = {
    "a sleeping fiber": "fiber.create(function() fiber.sleep(0.01) os.exit(3) end)",
    "a fiber that sleeps for ever": "fiber.create(function() fiber.sleep(1e9) end)",
    "a new fiber": "fiber.new(function() print('new') end)",
    "a chain of new fibers": "fiber.new(function() fiber.new(function() fiber.new(print, 'newest') end) end)",
    "a fiber that has yielded": "fiber.create(function() fiber.yield() os.exit(3) end)",
    "a fiber that yields again": "fiber.create(function() for _ = 1, 3 do fiber.yield() end os.exit(3) end)",
    "a new fiber that yields": "fiber.new(function() fiber.yield() os.exit(3) end)",
    "an earlier fiber": "fiber.create(function() fiber.sleep(0.01) print(1) end) fiber.sleep(0.1)",
    "a reader of a channel": "fiber.create(c.get, c)",
    "a reader that gets its message": "fiber.create(function() print(c:get()) end) c:put('message')",
    "a reader that wants another message": (
        "fiber.create(function() print(c:get()) print(c:get()) end) c:put('message')"
    ),
    "a reader whose message comes from a new fiber": (
        "fiber.create(function() print(c:get()) end) fiber.new(c.put, c, 'message')"
    ),
    "a fiber that waits for a condition": "fiber.create(condition.wait, condition)",
    "a condition that is met": "fiber.create(function() condition:wait() print(1) end) condition:signal()",
    "a cancelled fiber": "fiber.create(function() fiber.sleep(100) end):cancel()",
    "a fiber that ignores its cancellation": (
        "fiber.create(function() pcall(fiber.sleep, 100) pcall(fiber.yield) os.exit(3) end):cancel()"
    ),
    "fibers that wait for each other's end": (
        "local a = fiber.new(function() local b = fiber.new(print) b:set_joinable(true) b:join() end) "
        "a:set_joinable(true) fiber.create(function() a:join() print('joined') end)"
    ),
    "an error of a fiber": "fiber.create(function() error('not joined') end) fiber.new(error, {})",
    "no fiber": "print('nothing')",
}

ENDS = {
    "the end": "print('written')",
    "a value": "return 5, 'text'",
    "an error": "print('written') error('wrong')",
    "an error without a position": "error('two\\nlines', 0)",
    "an error that is a table": "error({1})",
    "an error that is no text": "error(nil)",
    "an error with a text": "error(setmetatable({}, {__tostring = function() return 'its text' end}))",
    "a long error": "error(('long '):rep(1000))",
    "an error with a zero byte": "error('text\\0 more')",
    "no Lua": "x y z",
    "an endless recursion": "local function f() return f() + 1 end f()",
    "a missing module": "require('no.such')",
    "an error after a wait": "require('fiber').sleep(0.01) error('late')",
    "an error with a new fiber": (
        "local fiber = require('fiber') fiber.new(print, 'new') "
        "fiber.create(function() fiber.yield() print('no') end) error(1)"
    ),
    "cancellation": "require('fiber').self():cancel()",
    "os.exit": "io.write('written') os.exit()",
    "os.exit with a status": "print('written') os.exit(7) print('not written')",
    "os.exit with a fraction": "os.exit(2.7)",
    "os.exit with a negative status": "os.exit(-1)",
    "os.exit with a large status": "os.exit(259)",
    "os.exit with a text": "os.exit('5')",
    "os.exit with a boolean": "os.exit(false)",
    "os.exit that closes": "os.exit(3, true)",
    "os.exit under pcall": "print(pcall(os.exit, 4))",
    "os.exit in a coroutine": "coroutine.wrap(function() os.exit(5) end)() print('not written')",
    "os.exit in a callback": "table.sort({1, 2, 3}, function() os.exit(6) end)",
    "os.exit in a fiber": "require('fiber').create(function() os.exit(8) end) print('written')",
    "os.exit in a fiber later": (
        "local fiber = require('fiber') "
        "fiber.create(function() fiber.sleep(0.01) os.exit(9) end) fiber.sleep(100)"
    ),
    "os.exit with other fibers": (
        "local fiber = require('fiber') fiber.new(print, 'new') "
        "fiber.create(function() fiber.yield() print('no') end)"
        "fiber.create(function() pcall(fiber.sleep, 100) print('no') end) os.exit(1)"
    ),
    "os.exit twice": "require('fiber').new(function() os.exit(2) end) os.exit(1)",
    "standard output that is closed": "print('written') io.stdout:close() print('nowhere')",
}


@pytest.mark.real_tarantool
@pytest.mark.parametrize("case", FIBERS)
def test_fibers_keep_the_process_alive(our: Program, tarantool: Program, case: str) -> None:
    script = (
        "local fiber = require('fiber') local condition, c = fiber.cond(), fiber.channel(1) "
        f"{FIBERS[case]} print('end')"
    )
    assert comparable(our.run_script(script)) == comparable(tarantool.run_script(script))


@pytest.mark.real_tarantool
@pytest.mark.parametrize("case", ENDS)
def test_output_messages_and_status_are_alike(our: Program, tarantool: Program, case: str) -> None:
    assert comparable(our.run_script(ENDS[case])) == comparable(tarantool.run_script(ENDS[case]))


def test_hooks_run_before_the_end(our: Program) -> None:
    script = """
    local hooks = require('internal.program.shutdown').hooks
    local fiber = require('fiber')
    table.insert(hooks, function() print(fiber.self():name()) fiber.sleep(0.01) error('wrong') end)
    table.insert(hooks, function() print('last') os.exit(1) end)
    """
    outcome = our.run_script(script)
    assert (outcome.output, outcome.status) == ("on_shutdown\nlast\n", 0)
    assert outcome.errors.endswith(": wrong\n")
