"""The session of the server's own work, and acting as other users."""

from __future__ import annotations

import pytest

from tests.lua.box.alike import assert_alike
from tests.lua.snippets import LuaProcess

SNIPPETS = {
    "its attributes": (
        "return box.session.user(), box.session.uid(), box.session.euid(), "
        "box.session.effective_user(), box.session.type(), box.session.peer(), "
        "box.session.exists(box.session.id())"
    ),
    "su": (
        "return box.session.su('guest', function(a) return box.session.user(), "
        "box.session.effective_user(), a end, 5), box.session.effective_user()"
    ),
    "su that fails": (
        "return pcall(box.session.su, 'guest', function() error('no') end), box.session.effective_user()"
    ),
    "su to nobody": "return pcall(box.session.su, 'nobody', function() end), pcall(box.session.su)",
    "su without rights": "return pcall(box.session.su, 'guest', function() return s:select() end)",
    "storage": "box.session.storage.x = 5 return box.session.storage.x, box.session.storage.y",
    "triggers": (
        "local f = box.session.on_connect(function() end) local n = #box.session.on_connect() return "
        "type(f), box.session.on_connect(nil, f), n - #box.session.on_connect(), "
        "pcall(box.session.on_disconnect, 5)"
    ),
}


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=list(SNIPPETS))
def test_are_alike(ours: LuaProcess, real: LuaProcess, snippet: str) -> None:
    assert_alike(ours, real, snippet)
