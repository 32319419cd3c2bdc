"""The live view of a server: `iproto-server top`."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static
from textual.worker import Worker, WorkerState

from iproto_server.tools.client import ClientError
from iproto_server.tools.operators.operator_client import CallError
from iproto_server.tools.operators.rates import Looks
from iproto_server.tools.operators.shown import STATES, depth, duration, printable, rate, size

_CALLS: Final = ("put", "take", "ack")
_LATE: Final = 0.1
"""The latency of the event loop, in seconds, from which on it is marked."""

Record = dict[str, Any]


class Top(App[str]):
    """Shows a server until q is pressed. Returns why it has ended, if not by that.

    Parameters:
        looks: asks the server.
        interval: seconds between two looks.
        count: the number of looks; None: no limit.
    """

    CSS = """
    #head { height: auto; padding: 0 1; }
    DataTable { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("p", "pause", "Pause"),
        Binding("s", "sort", "Sort"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, looks: Looks, interval: float, count: int | None = None) -> None:
        super().__init__()
        self._looks = looks
        self._interval = interval
        self._left = count
        self._is_paused = False
        self._by_depth = False

    def compose(self) -> ComposeResult:
        """Make the parts of the screen."""
        yield Static(id="head")
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        """Show the first look, and take others from time to time."""
        self._show()
        self.set_interval(self._interval, self._look_again)

    def action_pause(self) -> None:
        """Pause, or go on."""
        self._is_paused = not self._is_paused
        self._show()

    def action_sort(self) -> None:
        """Sort by the number of ready tasks, or by name."""
        self._by_depth = not self._by_depth
        self._show()

    def _look_again(self) -> None:
        if not self._is_paused and not any(worker.is_running for worker in self.workers):
            self.run_worker(self._looks.look, thread=True, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show what the server has answered, or end with its error."""
        error = event.worker.error
        if event.state == WorkerState.SUCCESS:
            self._show()
            if self._left is not None:
                self._left -= 1
                if self._left < 1:
                    self.exit()
        elif isinstance(error, CallError | ClientError):
            self.exit(str(error))
        elif error is not None:
            raise error

    def _show(self) -> None:
        if not self.query(DataTable):
            return  # an answer has come while the screen is being closed
        last = self._looks.last
        self.query_one("#head", Static).update(_head(self._looks.address, last, self._is_paused))
        queues = sorted(
            last["queues"],
            key=lambda queue: (-queue["tasks"].get("ready", 0) if self._by_depth else 0, queue["name"]),
        )
        table = self.query_one(DataTable)
        place = table.cursor_row
        states = [state for state in STATES if any(state in queue["tasks"] for queue in queues)]
        table.clear(columns=True)
        table.add_column("queue")
        for column in (*states, "oldest ready", "waiting", *(f"{call}/s" for call in _CALLS)):
            table.add_column(Text(column, justify="right"))
        for queue in queues:
            table.add_row(*_cells(queue, states))
        table.move_cursor(row=min(place, max(len(queues) - 1, 0)))


def _cells(queue: Record, states: list[str]) -> list[Text]:
    rates = queue["rates"]
    numbers = [
        *(depth(queue, state) for state in states),
        duration(queue["oldest_ready"]),
        f"{queue['waiting']}",
        *(rate(rates[call]) if call in rates else "" for call in _CALLS),
    ]
    return [Text(printable(queue["name"])), *(Text(number, justify="right") for number in numbers)]


def _head(address: str, last: Record, is_paused: bool) -> Text:
    requests, connections, loop = last["requests"], last["connections"], last["loop"]
    network, wal, snapshots = last["network"], last["wal"], last["snapshots"]
    text = Text()
    text.append(address, style="bold")
    text.append(f"  {printable(last['version'])}  up {duration(last['uptime'])}  lsn {last['lsn']}")
    for is_shown, mark in (
        (last["read_only"], "read-only"),
        (is_paused, "paused"),
        (snapshots["is_running"], "snapshot"),
        (wal["failures"] > 0, f"{wal['failures']} failed writes to the log"),
    ):
        if is_shown:
            text.append(f"  {mark}", style="bold red")
    text.append(
        f"\nrequests {requests['per_second']}/s, {requests['in_flight']} in flight"
        f"   connections {connections['current']}"
        f"   in {size(network['received']['per_second'])}/s, out {size(network['sent']['per_second'])}/s"
    )
    text.append(
        f"\nmemory {size(last['memory']['process'])}, rows {size(last['memory']['data'])}   event loop "
    )
    latency = f"{loop['latency'] * 1000:.1f} ms late, {loop['latency_max'] * 1000:.1f} ms at most lately"
    text.append(latency, style="bold red" if loop["latency"] > _LATE else "")
    return text
