"""`box.info`: identity and state of this instance.

Source: Tarantool reference, "Submodule box.info"; the keys are those of 2.11.
"""

from __future__ import annotations

import os
import time
from typing import Any, Final

from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.instance.slab import Memory

_FUNCTIONS: Final = ("gc", "memory", "sql")
"""Functions, which `box.info()` shows as empty tables, as Tarantool does."""


class Info:
    """`box.info`: all values by a call, or one by one: `box.info.lsn`, `box.info.memory()`.

    Parameters:
        box: the box.
        memory: the memory in use.
    """

    def __init__(self, box: BoxCore, memory: Memory) -> None:
        self._box = box
        self._memory = memory
        self._started = time.monotonic()

    def __call__(self) -> dict[str, Any]:
        """All values: version, uuid, pid, uptime (seconds), lsn, status and so on."""
        box = self._box
        vclock = dict(box.transactions.journal.vclock)
        lsn = vclock.get(box.replica_id, 0)
        identity = {"id": box.replica_id, "uuid": str(box.uuid), "lsn": lsn}
        values: dict[str, Any] = {
            "version": box.version,
            "id": box.replica_id,
            "ro": box.is_read_only,
            "uuid": str(box.uuid),
            "package": "iproto-server",
            "cluster": {"uuid": str(box.cluster_uuid)},
            "listen": box.listen[0] if box.listen else None,
            "replication": {box.replica_id: identity},
            "replication_anon": {"count": 0},
            "signature": sum(vclock.values()),
            "status": "running",
            "vclock": vclock,
            "uptime": int(time.monotonic() - self._started),
            "lsn": lsn,
            "pid": os.getpid(),
            "election": {"state": "follower", "term": 1, "vote": 0, "leader": 0},
            "schema_version": box.catalog.schema_version,
            **{name: [] for name in _FUNCTIONS},
        }
        if box.is_read_only:
            values["ro_reason"] = "config"
        return values

    def memory(self) -> dict[str, int]:
        """Bytes in use, by purpose.

        `data` is the size of the rows, `index` that of indexes, `net` that of unsent bytes, and `lua` the
        rest of the process. The size of transactions, and in pure Python that of indexes, is unknown and
        contained in `lua`; there is no cache.
        """
        memory = self._memory
        data, index, net = memory.data(), memory.indexes(), memory.network()
        rest = max(memory.used() - data - index - net, 0)
        return {"cache": 0, "data": data, "index": index, "lua": rest, "net": net, "tx": 0}

    def gc(self) -> dict[str, Any]:
        """The kept snapshots, with the references of a backup, and whether one is being written."""
        snapshots = [dict(vclock) for vclock in self._box.kept_snapshots()]
        pinned = self._box.pinned_snapshot()
        checkpoints: list[dict[str, Any]] = [
            {"vclock": vclock, "signature": sum(vclock.values()), "references": []} for vclock in snapshots
        ]
        for checkpoint in checkpoints:
            if checkpoint["signature"] == pinned:
                checkpoint["references"] = ["backup"]
        oldest = snapshots[0] if snapshots else {}
        return {
            "vclock": oldest,
            "signature": sum(oldest.values()),
            "checkpoint_is_in_progress": self._box.is_taking_snapshot(),
            "checkpoints": checkpoints,
            "consumers": [],
        }

    def sql(self) -> dict[str, Any]:
        """The SQL cache, which is always empty."""
        return {"cache": {"size": 0, "stmt_count": 0}}

    def __getattr__(self, name: str) -> Any:
        if name == "ro_reason" or not name.startswith("_"):
            values = self()
            if name in values:
                return values[name]
            if name == "ro_reason":
                return None
        raise AttributeError(f"box.info has no {name!r}")
