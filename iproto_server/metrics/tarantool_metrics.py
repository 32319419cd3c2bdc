"""The metrics that Tarantool's module `metrics` has, by its names, labels and units.

Source: Tarantool manual, "Monitoring: metrics reference".
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from iproto_server.box.api.box import Box
from iproto_server.box.catalog.system_space_ids import SYSTEM_ID_MAX
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.metrics.exposition import Family, Sample, histogram_samples
from iproto_server.metrics.loop_lag import LoopLag

_NET: Final = {
    "SENT": ("sent", "Bytes sent to clients"),
    "RECEIVED": ("received", "Bytes received from clients"),
    "CONNECTIONS": ("connections", "Connections"),
    "REQUESTS": ("requests", "Requests"),
    "REQUESTS_IN_PROGRESS": ("requests_in_progress", "Requests that are being processed"),
    "REQUESTS_IN_STREAM_QUEUE": ("requests_in_stream_queue", "Requests that wait in the queues of streams"),
}
_STATUSES: Final = (
    "uninitialized",
    "startup_in_progress",
    "reload_in_progress",
    "check_warnings",
    "check_errors",
    "ready",
)
_ENGINE: Final = "memtx"


def tarantool_families(box: Box, lag: LoopLag) -> Iterator[Family]:
    """Yield the metrics.

    Parameters:
        box: the box.
        lag: measures the event loop's latency.
    """
    yield from _info(box)
    yield from _net(box)
    yield _family(
        "stats_op",
        "Requests by type, and failed requests (error)",
        [Sample(counted["total"], {"operation": name.lower()}) for name, counted in box.stat().items()],
        kind="counter",
    )
    yield from _spaces(box)
    yield from _memory(box)
    yield from _process(lag)


def _family(name: str, help: str, samples: Iterator[Sample] | list[Sample], *, kind: str = "gauge") -> Family:
    return Family(f"tnt_{name}", kind, help, samples)


def _gauge(name: str, help: str, value: int | float) -> Family:
    return _family(name, help, [Sample(value, {})])


def _info(box: Box) -> Iterator[Family]:
    info = box.info()
    yield _gauge("info_uptime", "Seconds since the start", info["uptime"])
    yield _gauge("info_lsn", "Number of the last row in the log", info["lsn"])
    vclock = [Sample(lsn, {"id": str(replica)}) for replica, lsn in info["vclock"].items()]
    yield _family("info_vclock", "Number of the last row by instance", vclock)
    yield _gauge("read_only", "1 if the instance refuses changes", int(info["ro"]))
    statuses = [Sample(int(status == "ready"), {"status": status}) for status in _STATUSES]
    yield _family("config_status", "1 for the state of the configuration", statuses)


def _net(box: Box) -> Iterator[Family]:
    net = box.stat.net()
    threads = {str(number): counted for number, counted in enumerate(box.stat.net.thread(), 1)}
    for key, (name, help) in _NET.items():
        for counted in ("total", "current"):
            if counted not in net[key]:
                continue
            kind = "counter" if counted == "total" else "gauge"
            end, text = (
                ("", f"{help}, since the start") if kind == "counter" else ("_current", f"{help}, now")
            )
            yield _family(f"net_{name}{end}", text, [Sample(net[key][counted], {})], kind=kind)
            samples = [Sample(each[key][counted], {"thread": thread}) for thread, each in threads.items()]
            yield _family(f"net_per_thread_{name}{end}", f"{text}, by network thread", samples, kind=kind)


def _spaces(box: Box) -> Iterator[Family]:
    # What is to be shown may change while the page is written: each family reads on its own.
    yield _family("space_len", "Rows of the space", _of_spaces(box, lambda space: len(space.indexes[0])))
    yield _family("space_bsize", "Bytes of the rows", _of_spaces(box, lambda space: space.bsize))
    yield _family(
        "space_index_bsize",
        "Bytes of memory of the index",
        (
            Sample(index.bsize(), {"name": space.name, "index_name": index.name})
            for space in _shown_spaces(box)
            for index in list(space.indexes.values())
        ),
    )
    yield _family(
        "space_total_bsize",
        "Bytes of the rows and of memory of the indexes",
        _of_spaces(box, lambda space: space.bsize + sum(each.bsize() for each in space.indexes.values())),
    )


def _shown_spaces(box: Box) -> Iterator[MemtxSpace]:
    for space in box.catalog:
        is_system = space.id <= SYSTEM_ID_MAX or space.name.startswith("_")
        if not is_system and not space.is_temporary and 0 in space.indexes:
            yield space


def _of_spaces(box: Box, value: Any) -> Iterator[Sample]:
    for space in _shown_spaces(box):
        yield Sample(value(space), {"name": space.name, "engine": _ENGINE})


def _memory(box: Box) -> Iterator[Family]:
    slab: Mapping[str, int | str] = box.slab.info()
    for name, value in slab.items():
        number = float(value.rstrip("%")) if isinstance(value, str) else value
        yield _gauge(f"slab_{name}", f"{name} of box.slab.info()", number)
    for name, number in box.runtime.info().items():
        if name != "maxalloc":
            yield _gauge(f"runtime_{name}", f"{name} of box.runtime.info()", number)
    for name, number in box.info.memory().items():
        yield _gauge(f"info_memory_{name}", f"{name} of box.info.memory()", number)
    yield _gauge("memory", "Resident memory of the process in bytes", box.memory.used())
    yield _gauge("memory_virt", "Virtual memory of the process in bytes", box.memory.virtual())


def _process(lag: LoopLag) -> Iterator[Family]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield _gauge("cpu_user_time", "Seconds of processor time of the process", usage.ru_utime)
    yield _gauge("cpu_system_time", "Seconds of processor time of the system for it", usage.ru_stime)
    yield _gauge(
        "ev_loop_time",
        "Longest latency of the event loop in 15 to 30 seconds, in milliseconds",
        lag.recent * 1000,
    )
    yield _gauge("cfg_current_time", "Time of the instance in seconds since 1970", int(time.time()))
    yield Family(
        "iproto_server_loop_latency_seconds",
        "histogram",
        "Latency of the event loop, measured ten times a second",
        histogram_samples(lag.measured, {}),
    )
