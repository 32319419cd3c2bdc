"""`box.backup`: keeps the files of a snapshot while they are copied.

Source: Tarantool reference, "Submodule box.backup".
"""

from __future__ import annotations

from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.lua_arguments import is_of_type
from iproto_server.errors import BoxError


class Backup:
    """`box.backup`.

    Parameters:
        box: the box.
    """

    def __init__(self, box: BoxCore) -> None:
        self._box = box

    def start(self, back: int = 0) -> list[str]:
        """Keep a snapshot and the logs that follow it, whatever `checkpoint_count` says, until `stop`.

        The server's end is the end of a backup, too.

        Parameters:
            back: which snapshot: 0 is the newest, 1 the one before it, and so on.

        Returns: the paths of the files to copy: as in Tarantool, that of the snapshot.

        Raises:
            BoxError: BACKUP_IN_PROGRESS (129) before the end of another backup; MISSING_SNAPSHOT (93) if
                there are not so many snapshots; PROC_LUA (32) if `back` is not a number from 0 on;
                UNSUPPORTED without files.
        """
        if not is_of_type(back, (int, float)) or back != back:
            raise BoxError.procedure("box.backup.start(): the number of the snapshot must be a number")
        index = int(min(max(back, -1), 2**31))
        if index < 0:
            raise BoxError.procedure("invalid checkpoint index")
        return self._box.start_backup(index)

    def stop(self) -> None:
        """End the backup, if there is one."""
        self._box.stop_backup()
