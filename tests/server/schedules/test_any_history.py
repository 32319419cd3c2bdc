"""Each due time leads to one task, whatever happens to the clock, the log, the queue and the server."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from iproto_server.server.schedules.cron import CronExpression
from iproto_server.server.schedules.schedule import SPACE
from tests.plugins.profiles import examples
from tests.server.schedules.world import SECOND, World

MINUTE: Final = 60
_WITHOUT_TIME: Final = ["restart", "read-only", "writable", "drop", "create", "same"]
_SPAN: Final = st.integers(0, 30 * MINUTE)
_EVENTS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), _SPAN),
        st.tuples(st.just("step"), st.integers(-90 * MINUTE, 90 * MINUTE)),
        st.tuples(
            st.sampled_from(["restart", "read-only", "writable", "drop", "create", "same"]), st.just(0)
        ),
        st.tuples(st.sampled_from(["lose", "lose and restart"]), _SPAN),
    ),
    max_size=12,
)


def apply(world: World, event: str, seconds: int) -> None:
    """Let something happen."""
    tubes = {"jobs": "jobs" in world.box.space}
    match event:
        case "pass":
            world.clock.advance(seconds)
        case "step":
            world.clock.set_wall_clock(world.clock.time_ns() + seconds * SECOND)
            world.clock.advance(0)
        case "restart":
            world.crash()
            world.start_again()
        case "read-only" | "writable":
            world.box.set_read_only(event == "read-only")
        case "lose" | "lose and restart":
            world.journal.is_slow = True
            world.clock.advance(seconds)
            if event == "lose and restart":
                world.crash()
            world.lose_log()
            if event == "lose and restart":
                world.start_again()
        case "same" if not world.box.is_read_only and tubes["jobs"]:
            world.schedule("*/7 * * * *", missed="all")
        case "drop" if not world.box.is_read_only and tubes["jobs"]:
            world.moved += world.count
            world.drop_tube("jobs")
        case "create" if not world.box.is_read_only and not tubes["jobs"]:
            world.create_tube("jobs", "fifo")


@examples(50)
@given(_EVENTS)
def test_each_due_time_leads_to_one_task(events: list[tuple[str, int]]) -> None:
    world = World("fifo")
    first = world.schedule("*/7 * * * *", missed="all")["next_due"]
    for event, seconds in events:
        apply(world, event, seconds)
    world.box.set_read_only(False)
    apply(world, "create", 0)
    row = world.box.space[SPACE].get("nightly")
    assert row is not None
    handled = row["handled"]
    # The clock may have gone back; all is put when it has passed the last handled due time.
    world.clock.advance(max(handled - world.clock.time_ns() / SECOND, 0) + 8 * MINUTE)
    cron = CronExpression("*/7 * * * *", "UTC")
    last = world.shown()["last_due"]
    expected, moment = 0, first - 1
    while (following := cron.after(moment)) is not None and following <= last:
        expected, moment = expected + 1, following
    assert world.moved + world.count == expected
    assert last > world.clock.time_ns() / SECOND - 7 * MINUTE
