"""An application whose trigger refuses to make poisoned tasks of the tutorial's queue ready."""

from __future__ import annotations

from iproto_server import Application, Box, Tuple

POISON = "poison"

app = Application("raising")


@app.setup
def follow(box: Box) -> None:
    """Follow the changes of tasks."""
    box.space["queue"].on_replace(_refuse)


def _refuse(old: Tuple | None, new: Tuple | None) -> None:
    if old is not None and new is not None and new[3] == POISON:
        raise ValueError("a callback fails")
