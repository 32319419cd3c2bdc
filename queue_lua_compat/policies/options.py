"""The options of a queue's policy and of a task's, as clients give them and as they are stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import partial
from typing import Any, Final, Self

from iproto_server import BoxError
from queue_lua_compat.lua_numbers import described

_LONGEST: Final = 100 * 366 * 86_400
"""The maximum duration in seconds, a hundred years."""

_KEY_MAX: Final = 1000
"""The maximum length of a unique key."""

_NAME_MAX: Final = 100
"""The length of names that are compared with the known ones."""

_LIMIT_MAX: Final = 2**31


class ReleaseLimitPolicy(StrEnum):
    """The policy for a task that has reached its `release_limit`.

    Source: README of github.com/tarantool/sharded-queue, "release_limit_policy".
    """

    DELETE = "DELETE"
    DLQ = "DLQ"


@dataclass(frozen=True, slots=True)
class Retry:
    """Delays before the next attempts, growing exponentially.

    Attributes:
        delay: seconds after the first failed attempt.
        factor: each delay is the one before it times this factor.
        max_delay: the maximum delay in seconds.
        jitter: a delay is shortened at random by up to this part of it, 0 to 1.
    """

    delay: float = 1.0
    factor: float = 2.0
    max_delay: float = 3600.0
    jitter: float = 0.1

    def delay_after(self, attempts: int, chance: float) -> float:
        """Return the seconds to wait after a number of failed attempts.

        Parameters:
            attempts: how many have failed, 1 or more.
            chance: a random number from 0 to 1.
        """
        try:
            delay = self.delay * self.factor ** (attempts - 1)
        except OverflowError:
            delay = self.max_delay
        return min(delay, self.max_delay) * (1 - self.jitter * chance)

    @classmethod
    def of(cls, value: object, what: str = "retry") -> Self:
        """Check an option.

        Parameters:
            value: its value.
            what: its name.

        Raises:
            BoxError: it is no map, has an unknown name, or a wrong number.
        """
        if value == []:  # an empty map of a Lua client
            value = {}
        if not isinstance(value, Mapping):
            raise BoxError.procedure(f"{what} must be a map, or false for none, not {value!r}")
        refuse_unknown(value, [field.name for field in fields(cls)], what)
        least = {"delay": 0.0, "factor": 1.0, "max_delay": 0.0, "jitter": 0.0}
        most = {"jitter": 1.0, "factor": 1000.0}
        return cls(
            **{
                name: _number(given, f"{what}.{name}", least[name], most.get(name, _LONGEST))
                for name, given in value.items()
                if given is not None
            }
        )


ATTEMPT_OPTIONS: Final = ("release_limit", "release_limit_policy", "retry", "disconnect_retry")
"""The options about failed attempts, of queues and of puts."""

QUEUE_OPTIONS: Final = (*ATTEMPT_OPTIONS, "strict_options")
"""The options of all queues. A queue of a dialect without times to run has `ttr` as well."""

TASK_OPTIONS: Final = frozenset({*ATTEMPT_OPTIONS, "unique_key", "unique_for"})
"""The options of a put, as `QUEUE_OPTIONS`."""


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The options of a queue, or those of a task, which come first.

    Attributes:
        release_limit: a task whose attempt has failed that often is not tried again; 0 for no limit, None to
            count no attempts.
        release_limit_policy: what happens to it instead.
        retry: delays before further attempts; None for none.
        disconnect_retry: delays after attempts that ended with their consumer's connection; None for those of
            `retry`.
        strict_options: whether a put with unknown options is refused.
        ttr: seconds that a consumer may have a task; None for no limit.
        unique_key: the task's key; a second put with it answers the first one's task.
        unique_for: seconds that the key is remembered after the task is gone.
    """

    release_limit: int | None = None
    release_limit_policy: ReleaseLimitPolicy | None = None
    retry: Retry | None = None
    disconnect_retry: Retry | None = None
    strict_options: bool = False
    ttr: float | None = None
    unique_key: str | None = None
    unique_for: float = 0.0

    @property
    def counts_attempts(self) -> bool:
        """Whether failed attempts are counted."""
        return self.release_limit is not None or self.retry is not None

    @classmethod
    def of(cls, given: Mapping[Any, Any]) -> Self:
        """Check options; names that are not fields of this class, and nil, are left out.

        Raises:
            BoxError: a value is wrong.
        """
        checked: dict[str, Any] = {}
        for name, value in given.items():
            check = _CHECKS.get(name) if isinstance(name, str) else None
            if check is not None and value is not None:
                checked[name] = check(value)
        options = cls(**checked)
        if options.unique_for and options.unique_key is None:
            raise BoxError.procedure("unique_for needs a unique_key")
        return options


def stored(given: Mapping[Any, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the options with some names that are not nil, to be stored."""
    return {name: given[name] for name in names if given.get(name) is not None}


def refuse_unknown(given: Mapping[Any, Any], known: Iterable[str], what: str) -> None:
    """Raise BoxError if there is an option that is not known.

    Parameters:
        given: the options.
        known: the names.
        what: the subject of the error: "put".
    """
    names = sorted(known)
    for name in given:
        if name not in names:
            raise BoxError.procedure(no_option(name, names, what))


def no_option(name: object, known: Iterable[str], what: str) -> str:
    """Return the text about an unknown option: its name, the most similar one, and all that there are.

    Parameters:
        name: the option's name as given.
        known: the known names.
        what: the subject: "put".
    """
    names = sorted(known)
    if not isinstance(name, str):
        return f"{what} has no option {described(name)}; it has {', '.join(names) or 'none'}"
    import difflib  # needed for mistakes only

    close = difflib.get_close_matches(name[:_NAME_MAX], names, n=1)
    meant = f', did you mean "{close[0]}"?' if close else ";"
    return f"{what} has no option {described(name)}{meant} it has {', '.join(names) or 'none'}"


def _number(value: object, name: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise BoxError.procedure(f"{name} must be a number from {least:g} to {most:g}, not {value!r}")
    return float(value)


def _limit(value: object) -> int | None:
    if value is False:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= _LIMIT_MAX:
        raise BoxError.procedure(f"release_limit must be a whole number, not {value!r}")
    # The module's value for no limit is -1.
    return None if value < 0 else value


def _policy(value: object) -> ReleaseLimitPolicy:
    try:
        return ReleaseLimitPolicy(value)  # type: ignore[arg-type]  # a wrong one is refused
    except ValueError:
        names = " or ".join(ReleaseLimitPolicy)
        raise BoxError.procedure(f"release_limit_policy must be {names}, not {value!r}") from None


def _retry(value: object, what: str) -> Retry | None:
    return None if value is False else Retry.of(value, what)


def _strict(value: object) -> bool:
    if not isinstance(value, bool):
        raise BoxError.procedure(f"strict_options must be true or false, not {value!r}")
    return value


def _ttr(value: object) -> float | None:
    if value is False:
        return None
    seconds = _number(value, "ttr", 0, math.inf)
    if seconds <= 0:
        raise BoxError.procedure("ttr must be more than 0 seconds")
    return None if seconds > _LONGEST else seconds


def _unique_key(value: object) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not 1 <= len(value) <= _KEY_MAX:
        raise BoxError.procedure(
            f"unique_key must be a text of 1 to {_KEY_MAX} characters, or a whole number"
        )
    return value


def _unique_for(value: object) -> float:
    return _number(value, "unique_for", 0, _LONGEST)


_CHECKS: Final[Mapping[str, Callable[[object], object]]] = {
    "release_limit": _limit,
    "release_limit_policy": _policy,
    "retry": partial(_retry, what="retry"),
    "disconnect_retry": partial(_retry, what="disconnect_retry"),
    "strict_options": _strict,
    "ttr": _ttr,
    "unique_key": _unique_key,
    "unique_for": _unique_for,
}
