"""The global `box` before the first `box.cfg`, and what of it stays."""

from __future__ import annotations

import pytest

from tests.lua.program.scripts import Program, assert_output_alike

PREAMBLE = "local f, g = function() end, function() end\n"
CONFIGURE = " box.cfg{log = '/dev/null', wal_mode = 'none', memtx_memory = 32 * 1024 * 1024} "

SCRIPTS = {
    "what is missing": (
        "for _, name in ipairs{'space', 'schema', 'info', 'begin', 'nothing', 'slab'} do "
        "print(name, rawget(box, name), (pcall(function() return box[name] end))) end"
    ),
    "what is missing afterwards": CONFIGURE + "print(box.nothing, type(box.begin), type(box.space))",
    "the session": (
        "local s = box.session print(s.id(), s.uid(), s.euid(), s.user(), s.effective_user(), s.type(), "
        "s.exists(1), s.exists(2), s.peer(), s.push(1))"
    ),
    "storage": f"box.session.storage.x = 5 {CONFIGURE} print(box.session.storage.x)",
    "triggers": (
        "local on = box.session.on_connect print(on(f) == f, on(g) == g, #on(), on()[1] == g, "
        f"on(nil, f), pcall(on, nil, f)) {CONFIGURE} print(#on(), on()[1] == g)"
    ),
    "triggers that are replaced": (
        f"local on = box.session.on_auth on(f) on(g, f) {CONFIGURE} print(#on(), on()[1] == g)"
    ),
    "wrong triggers": "print(pcall(box.session.on_disconnect, 5))",
    "identities": (
        "for _, name in ipairs{'instance_uuid', 'replicaset_uuid'} do for _, value in ipairs{'x', "
        "'00000000-0000-0000-0000-000000000000'} do print(pcall(box.cfg, {[name] = value})) end end"
    ),
    "identities that stay": (
        f"{CONFIGURE} for _, each in ipairs{{'x', box.info.uuid, box.info.cluster.uuid}} do "
        "print(pcall(box.cfg, {instance_uuid = each}), pcall(box.cfg, {replicaset_uuid = each})) end"
    ),
    "waiting for a state": (
        "local fiber = require('fiber') local ro, rw = fiber.new(box.ctl.wait_ro), "
        "fiber.new(box.ctl.wait_rw) "
        "ro:set_joinable(true) rw:set_joinable(true) fiber.yield() print(ro:status(), rw:status()) "
        f"{CONFIGURE} print(ro:join(), rw:join())"
    ),
    "waiting": "print(type(box.ctl.wait_rw), type(box.ctl.wait_ro), box.ctl.notify)",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=list(SCRIPTS))
def test_is_alike(our: Program, tarantool: Program, script: str) -> None:
    assert_output_alike(our, tarantool, PREAMBLE + script + " os.exit(0)")
