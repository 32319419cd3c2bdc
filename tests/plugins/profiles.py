"""How many examples Hypothesis tries: 100 of each property, ten in `make check`, a thousand on demand.

The examples are the same every time; `make test PYTEST_ARGS=--hypothesis-profile=explore` has new ones.
"""

from __future__ import annotations

from hypothesis import settings

DEFAULT = "iproto-server"

# Machines are busy at times: a deadline for each example would make tests fail that are right.
settings.register_profile(DEFAULT, deadline=None, max_examples=100, derandomize=True)
settings.register_profile("check", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(DEFAULT)  # Hypothesis loads the one of its option later


def examples(number: int, *, stateful_step_count: int | None = None) -> settings:
    """Settings for a property that wants more or fewer examples than others, in the profile's proportion.

    Parameters:
        number: Examples in the default profile.
        stateful_step_count: Steps of each example of a state machine; Hypothesis's own number without it.

    Returns:
        A decorator for the test.
    """
    profile = settings()
    steps = profile.stateful_step_count if stateful_step_count is None else stateful_step_count
    return settings(max_examples=max(1, number * profile.max_examples // 100), stateful_step_count=steps)
