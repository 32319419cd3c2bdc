"""The tables of the operators' commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from iproto_server.tools.operators.shown import STATES, depth, duration, moment, payload, printable, size

_PIPE_WIDTH: Final = 200
_DATA_WIDTH: Final = 60

Record = dict[str, Any]


def console() -> Console:
    """Return the console for tables; in a file or pipe, lines are long enough."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def _table(columns: Sequence[str], numbers: Iterable[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    right = set(numbers)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", no_wrap=True)
    return table


def _row(table: Table, *cells: object) -> None:
    # Texts of clients are no markup.
    table.add_row(*(Text("" if cell is None else printable(cell)) for cell in cells))


def show_queues(queues: Sequence[Record]) -> None:
    """Show queues with their depth and age."""
    has_due = any("overdue" in queue for queue in queues)
    states = [state for state in STATES if any(state in queue["tasks"] for queue in queues)]
    other = ["overdue", "next due"] if has_due else ["waiting"]
    has_state = any(queue.get("state", "running") != "running" for queue in queues)
    table = _table(
        ["queue", "dialect", *(["state"] if has_state else []), *states, "oldest ready", *other],
        [*states, "oldest ready", *other],
    )
    for queue in queues:
        rest = [queue["overdue"], duration(queue["next_due"])] if has_due else [queue.get("waiting", "")]
        _row(
            table,
            queue["name"],
            queue["dialect"],
            *([queue.get("state", "")] if has_state else []),
            *(depth(queue, state) for state in states),
            duration(queue["oldest_ready"]),
            *rest,
        )
    console().print(table)


def show_tasks(tasks: Sequence[Record], now: float) -> None:
    """Show tasks; ages are those at a time in seconds since 1970."""
    columns = ["id", "state", "age", "session", "taken for", "touched", "due in", "details", "data"]
    table = _table(columns, ["age"])
    for task in tasks:
        details = " ".join(f"{name}={value}" for name, value in task["details"].items())
        _row(
            table,
            task["id"],
            task["state"],
            _since(task["created"], now),
            task["session"],
            _since(task["taken_at"], now),
            _since(task.get("touched_at"), now),
            "" if task["due"] is None else duration(task["due"] - now),
            details,
            payload(task["data"], _DATA_WIDTH),
        )
    console().print(table)


def show_sessions(sessions: Sequence[Record], now: float) -> None:
    """Show sessions with the tasks that they hold."""
    columns = [
        "session",
        "user",
        "from",
        "connected for",
        "waits",
        "holds",
        "queue",
        "task",
        "for",
        "touched",
    ]
    table = _table(columns)
    for session in sessions:
        head = (
            session["id"],
            session["user"] or "(has gone)",
            session["peer"],
            _since(session["since"], now),
            session["waiting"] or "",
            session["taken"] or "",
        )
        for number, task in enumerate(session["tasks"] or [None]):
            shown = head if number == 0 else ("",) * len(head)
            held = ("",) * 4
            if task is not None:
                times = (_since(task["taken_at"], now), _since(task.get("touched_at"), now))
                held = (str(task["queue"]), str(task["id"]), *times)
            _row(table, *shown, *held)
        more = session["taken"] - len(session["tasks"])
        if more > 0:
            _row(table, *("",) * 6, "", f"… {more} more", "", "")
    console().print(table)


def show_schedules(schedules: Sequence[Record]) -> None:
    """Show schedules; times are in UTC."""
    columns = ["schedule", "queue", "cron", "timezone", "missed", "next due", "last due", "last task"]
    table = _table([*columns, "data", "last error"])
    for schedule in schedules:
        _row(
            table,
            *(schedule[name] for name in ("name", "queue", "cron", "timezone", "missed")),
            moment(schedule["next_due"]),
            moment(schedule["last_due"]),
            schedule["last_task"],
            payload(schedule["data"], _DATA_WIDTH),
            schedule["last_error"],
        )
    console().print(table)


def show_status(address: str, status: Record) -> None:
    """Show the state of a server. A real Tarantool tells less."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, text in status_lines(address, status):
        _row(table, name, text)
    console().print(table)


def status_lines(address: str, status: Record) -> list[tuple[str, str]]:
    """Return the state of a server in pairs of name and text."""
    lines = [
        ("server", f"{address}, {status['version']}, process {status['pid']}"),
        ("up", duration(status["uptime"]) + (", read-only" if status["read_only"] else "")),
        ("lsn", f"{status['lsn']}"),
    ]
    if "memory" not in status:
        return lines
    if "ready" in status:
        reason = status["not_ready_reason"]
        lines.append(("ready", "yes" if reason is None else f"no: {reason}"))
    memory, requests, wal = status["memory"], status["requests"], status["wal"]
    snapshots, loop, connections = status["snapshots"], status["loop"], status["connections"]
    return [
        *lines,
        (
            "memory",
            f"{size(memory['process'])} in the process, {size(memory['data'])} in rows,"
            f" {size(memory['index'])} in indexes, {_limit(memory['limit'])}",
        ),
        ("connections", f"{connections['current']} open, {connections['total']} since the start"),
        (
            "requests",
            f"{requests['per_second']}/s, {requests['in_flight']} in flight, {requests['total']} in all,"
            f" {requests['errors']} refused",
        ),
        (
            "log",
            f"{wal['mode']}, {size(wal['since_snapshot'])} since the last snapshot,"
            f" {wal['failures']} failed writes",
        ),
        (
            "snapshots",
            f"{snapshots['taken']} taken, {snapshots['failed']} failed, {snapshots['kept']} kept"
            + (", one is being written" if snapshots["is_running"] else ""),
        ),
        (
            "event loop",
            f"{loop['latency'] * 1000:.1f} ms late, {loop['latency_max'] * 1000:.1f} ms at most lately",
        ),
        ("time", moment(status["time"])),
    ]


def _limit(allowed: int | None) -> str:
    return "no limit" if allowed is None else f"limit {size(allowed)}"


def _since(begin: float | None, now: float) -> str:
    return "" if begin is None else duration(now - begin)
