"""The phases of a connection, and what is known of the client's end."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.server.connection.states import ClientEnd, Event, Phase, next_phase

EVENTS = {"HOLD": Event.HOLD, "CATCH_UP": Event.CATCH_UP, "CLOSE": Event.CLOSE, "LOSE": Event.LOSE}
CHANGES = {
    (Phase.SERVING, "HOLD"): Phase.HELD,
    (Phase.SERVING, "CLOSE"): Phase.CLOSING,
    (Phase.SERVING, "LOSE"): Phase.DRAINING,
    (Phase.HELD, "CATCH_UP"): Phase.SERVING,
    (Phase.HELD, "CLOSE"): Phase.CLOSING,
    (Phase.HELD, "LOSE"): Phase.DRAINING,
    (Phase.CLOSING, "LOSE"): Phase.ENDED,
    (Phase.DRAINING, "CLOSE"): Phase.ENDED,
}


@pytest.mark.parametrize(("phase", "event"), list(product(Phase, EVENTS)))
def test_an_event_without_an_effect_changes_nothing(phase: Phase, event: str) -> None:
    assert next_phase(phase, EVENTS[event]) == CHANGES.get((phase, event), phase)


@given(st.lists(st.sampled_from(list(EVENTS))))
def test_a_connection_neither_opens_nor_handles_requests_again(events: list[str]) -> None:
    """And it has ended exactly when it was both closed and lost."""
    phase: int = Phase.SERVING
    closed, lost = False, False
    for event in events:
        phase = next_phase(phase, EVENTS[event])
        closed |= event == "CLOSE"
        lost |= event == "LOSE"
        assert (phase in (Phase.CLOSING, Phase.ENDED)) is closed
        assert (phase in (Phase.DRAINING, Phase.ENDED)) is lost


@pytest.mark.parametrize("end", ClientEnd)
def test_a_half_closed_connection_that_was_read_to_its_end_stays_so(end: ClientEnd) -> None:
    assert end.after_hangup(is_gone=True) is ClientEnd.GONE
    expected = ClientEnd.READ if end is ClientEnd.READ else ClientEnd.SENDS_NO_MORE
    assert end.after_hangup(is_gone=False) is expected
