"""The lines of the log about what operators change."""

from __future__ import annotations

import logging
from functools import partial

from iproto_server.box import Box
from iproto_server.logging.log_setup import event

logger = logging.getLogger("iproto_server.operator")


def log_action(box: Box, action: str, **fields: object) -> None:
    """Log an operator's action with user and peer when the running transaction has committed.

    Parameters:
        box: the database, whose current session is the operator's.
        action: the procedure's name without its prefix.
        fields: the fields of the line.
    """
    session = box.session.current
    who = {"user": session.user.name, "peer": session.peer, "session": session.id}
    box.on_commit(
        partial(event, logger, logging.INFO, "an operator's action", action=action, **fields, **who)
    )
