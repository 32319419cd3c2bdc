"""The options of `spark.read.format("tarantool")`, checked before any file is opened."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Self, TypeVar

from iproto_server.storage.vclock import VClock
from pyspark_tarantool.source.delta_options import without_delta_names
from pyspark_tarantool.source.errors import SourceError

PARTITION_BYTES: Final = 32 * 1024**2

_Choice = TypeVar("_Choice", bound=StrEnum)


class Mode(StrEnum):
    """The content of the rows."""

    SNAPSHOT = "snapshot"
    """The tuples of a space in the newest snapshot."""

    CURRENT = "current"
    """The tuples of a space after all logged changes."""

    AT_LSN = "at_lsn"
    """The tuples of a space as of an LSN."""

    AT_TIME = "at_time"
    """The tuples of a space as of a time."""

    CHANGES = "changes"
    """The logged changes."""


class UnsignedAs(StrEnum):
    """The type of columns for 64-bit integers."""

    DECIMAL = "decimal"
    BIGINT = "bigint"


class NumberAs(StrEnum):
    """The type of columns for fields of the type `number`: integers, doubles and decimals."""

    TEXT = "text"
    BIGINT = "bigint"
    DOUBLE = "double"


class ExtraFields(StrEnum):
    """The treatment of fields beyond those of the format."""

    COLUMN = "column"
    DROP = "drop"
    FAIL = "fail"


class TuplesAs(StrEnum):
    """The representation of keys and tuples in changes."""

    STRUCT = "struct"
    JSON = "json"


class OnDamaged(StrEnum):
    """The treatment of damaged places."""

    FAIL = "fail"
    SKIP = "skip"


class SchemaEvolution(StrEnum):
    """The treatment of a space whose format changes while a stream runs."""

    EXTRA = "extra"
    FAIL = "fail"
    RESTART = "restart"


class Recreated(StrEnum):
    """The treatment of changes of a space that was dropped, and created again with other fields."""

    FAIL = "fail"
    SKIP = "skip"


class Passwords(StrEnum):
    """The treatment of password hashes, which are in rows of `_user`."""

    MASK = "mask"
    SHOW = "show"


LsnBound = int | VClock
"""The LSN of the only member that has written, or of each member."""

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
SNAPSHOT: Final = "snapshot"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a query.

    Attributes:
        paths: Files, directories and globs.
        mode: The content of the rows.
        space: The space's name, or its id; None in changes of all spaces.
        wal_dir: The directory of the logs; None for that of the snapshots.
        lsn: For `Mode.AT_LSN`: the LSN of the only member that has written, or of each member.
        time: For `Mode.AT_TIME`, in seconds since 1970.
        unsigned: The type of columns for 64-bit integers.
        number: The type of columns for fields of the type `number`.
        raw: Whether to add columns with packed values.
        extra_fields: The treatment of fields beyond those of the format.
        tuples: The representation of keys and tuples in changes.
        recreated: The treatment of changes from before the space was created again with other fields.
        passwords: The treatment of password hashes.
        damaged: The treatment of damaged places.
        bad_records_path: The directory for reports of skipped places; None for no reports.
        partition_bytes: The approximate size of a partition; 0 to not split files.
        show_nop: Whether to include rows that change nothing.
        where: A condition that is evaluated while reading; None for all rows.
        starting: The start of a stream: `earliest`, `latest`, `snapshot`, or a vector clock.
        starting_lsn: The first LSN of changes; None for all.
        ending_lsn: The last LSN of changes; None for all.
        starting_time: The time of the first changes, in seconds since 1970; None for all.
        ending_time: The time of the last changes, in seconds since 1970; None for all.
        max_bytes_per_trigger: The maximum size of a stream's batch; None for no limit.
        schema_evolution: The treatment of a format that changes while a stream runs.
        hold_path: The directory for hard links to files that a stream still has to read; None for none.
    """

    paths: tuple[str, ...]
    mode: Mode = Mode.CURRENT
    space: str | int | None = None
    wal_dir: str | None = None
    lsn: int | VClock | None = None
    time: float | None = None
    unsigned: UnsignedAs = UnsignedAs.DECIMAL
    number: NumberAs = NumberAs.TEXT
    raw: bool = False
    extra_fields: ExtraFields = ExtraFields.COLUMN
    tuples: TuplesAs = TuplesAs.JSON
    recreated: Recreated = Recreated.FAIL
    passwords: Passwords = Passwords.MASK
    damaged: OnDamaged = OnDamaged.FAIL
    bad_records_path: str | None = None
    partition_bytes: int = PARTITION_BYTES
    show_nop: bool = False
    where: str | None = None
    starting: str | VClock = EARLIEST
    starting_lsn: LsnBound | None = None
    ending_lsn: LsnBound | None = None
    starting_time: float | None = None
    ending_time: float | None = None
    max_bytes_per_trigger: int | None = None
    schema_evolution: SchemaEvolution = SchemaEvolution.EXTRA
    hold_path: str | None = None

    @classmethod
    def parse(cls, given: Mapping[str, str], *, streaming: bool = False) -> Self:
        """Parse the options of a query.

        Parameters:
            given: Names in any case, and values as text, from Spark.
            streaming: Whether this is a query of `readStream`.

        Returns:
            The options.

        Raises:
            SourceError: If one is missing, unknown or wrong; the message names it.
        """
        options = {name.lower(): text for name, text in given.items()}
        options = without_delta_names(options, streaming=streaming)
        all_names = frozenset(options)
        mode = _choice(options, "mode", Mode.CHANGES if streaming else Mode.CURRENT)
        if streaming and mode is not Mode.CHANGES:
            raise SourceError(f'a stream has changes: the option "mode" cannot be {mode}')
        space = _space(options.pop("space", None))
        if space is None and mode is not Mode.CHANGES:
            raise SourceError('the option "space" is missing: the name or the id of a space')
        lsn, time = _lsn(options, "lsn"), _time(options, "time")
        for name, value, wanted in (("lsn", lsn, Mode.AT_LSN), ("time", time, Mode.AT_TIME)):
            if (value is None) == (mode is wanted):
                reason = "is missing" if value is None else f"is for {wanted} only, not for {mode}"
                raise SourceError(f'the option "{name}" {reason}')
        tuples = _choice(options, "tuples", TuplesAs.JSON if space is None else TuplesAs.STRUCT)
        if tuples is TuplesAs.STRUCT and space is None:
            raise SourceError('tuples=struct is for the changes of one space: the option "space" is missing')
        partition_bytes = _bytes(options, "partition_bytes")
        parsed = cls(
            paths=_paths(options),
            mode=mode,
            space=space,
            wal_dir=options.pop("wal_dir", None),
            lsn=lsn,
            time=time,
            unsigned=_choice(options, "unsigned", UnsignedAs.DECIMAL),
            number=_choice(options, "number", NumberAs.TEXT),
            raw=_flag(options, "raw", False),
            extra_fields=_choice(options, "extra_fields", ExtraFields.COLUMN),
            tuples=tuples,
            recreated=_recreated(options, mode, space),
            passwords=_choice(options, "passwords", Passwords.MASK),
            damaged=_choice(options, "damaged", OnDamaged.FAIL),
            bad_records_path=options.pop("bad_records_path", None),
            partition_bytes=PARTITION_BYTES if partition_bytes is None else partition_bytes,
            show_nop=_flag(options, "show_nop", False),
            where=_where(options, streaming),
            starting=_starting(options.pop("starting", None), streaming),
            starting_lsn=_lsn(options, "starting_lsn"),
            ending_lsn=_lsn(options, "ending_lsn"),
            starting_time=_time(options, "starting_time"),
            ending_time=_time(options, "ending_time"),
            max_bytes_per_trigger=_limit(options, streaming),
            schema_evolution=_evolution(options, tuples, streaming),
            hold_path=_hold_path(options, streaming),
        )
        _check_range(parsed, all_names, streaming=streaming)
        if options:
            names = ", ".join(f'"{name}"' for name in sorted(options))
            raise SourceError(f"there is no option {names}")
        return parsed


def _paths(options: dict[str, str]) -> tuple[str, ...]:
    """The paths: Spark passes one as `path`, and several as a JSON list in `paths`."""
    paths = [path for path in (options.pop("path", None),) if path]
    several = options.pop("paths", None)
    if several is not None:
        paths += json.loads(several)
    if not paths:
        raise SourceError("there is no path: pass a file, directory or glob to load(PATH)")
    return tuple(paths)


def _choice(options: dict[str, str], name: str, default: _Choice) -> _Choice:
    text = options.pop(name, None)
    if text is None:
        return default
    kind = type(default)
    try:
        return kind(text.lower())
    except ValueError:
        allowed = ", ".join(choice.value for choice in kind)
        raise SourceError(f'the option "{name}" is {text!r}, not one of {allowed}') from None


def _flag(options: dict[str, str], name: str, default: bool) -> bool:
    text = options.pop(name, None)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise SourceError(f'the option "{name}" is {text!r}, not true or false')
    return text.lower() == "true"


_SIZE: Final = re.compile(r"([0-9]{1,18})([kmg]?)", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def _bytes(options: dict[str, str], name: str) -> int | None:
    text = options.pop(name, None)
    if text is None:
        return None
    match = _SIZE.fullmatch(text)
    if match is None:
        raise SourceError(f'the option "{name}" is {text!r}, not a number of bytes such as 64m')
    return int(match[1]) * _UNITS[match[2].lower()]


def _limit(options: dict[str, str], streaming: bool) -> int | None:
    limit = _bytes(options, "max_bytes_per_trigger")
    if limit is not None and not streaming:
        raise SourceError('the option "max_bytes_per_trigger" is for streams only')
    if limit == 0:
        raise SourceError('the option "max_bytes_per_trigger" is 0, but must be positive')
    return limit


def _space(text: str | None) -> str | int | None:
    if text is None:
        return None
    if not text:
        raise SourceError('the option "space" is empty')
    return int(text) if re.fullmatch(r"[0-9]{1,10}", text) else text


def _lsn(options: dict[str, str], name: str) -> LsnBound | None:
    text = options.pop(name, None)
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,19}", text):
        return int(text)
    try:
        return VClock.parse(text.strip())
    except ValueError:
        raise SourceError(
            f'the option "{name}" is {text!r}, neither a number nor a vector clock such as {{1: 10, 2: 7}}'
        ) from None


def _time(options: dict[str, str], name: str) -> float | None:
    """Seconds since 1970, or a date and time."""
    text = options.pop(name, None)
    if text is None:
        return None
    try:
        if re.fullmatch(r"[0-9]{1,12}(\.[0-9]*)?", text):
            return float(text)
        moment = datetime.fromisoformat(text)
    except ValueError:
        expected = "seconds since 1970 nor a time such as 2026-01-31T12:00:00Z"
        raise SourceError(f'the option "{name}" is {text!r}, neither {expected}') from None
    if moment.tzinfo is None:
        raise SourceError(f'the option "{name}" is {text!r} without a time zone: add Z or an offset')
    return moment.timestamp()


def _starting(text: str | None, streaming: bool) -> str | VClock:
    if text is None:
        return EARLIEST
    if not streaming:
        raise SourceError('the option "starting" is for streams only')
    if text.lower() in (EARLIEST, LATEST, SNAPSHOT):
        return text.lower()
    try:
        return VClock.parse(text.strip())
    except ValueError:
        expected = "earliest, latest, snapshot nor a vector clock such as {1: 10, 2: 7}"
        raise SourceError(f'the option "starting" is {text!r}, neither {expected}') from None


def _evolution(options: dict[str, str], tuples: TuplesAs, streaming: bool) -> SchemaEvolution:
    if "schema_evolution" in options:
        if not streaming:
            raise SourceError('the option "schema_evolution" is for streams only')
        if tuples is TuplesAs.JSON:
            raise SourceError('the option "schema_evolution" is for tuples=struct: JSON has all fields')
    return _choice(options, "schema_evolution", SchemaEvolution.EXTRA)


def _where(options: dict[str, str], streaming: bool) -> str | None:
    if options.pop("pushdown", "false").lower() != "false":
        raise SourceError(
            'the option "pushdown" was removed, because Spark uses the filters of one scan for others of the '
            'same table: give the condition with the option "where", such as "id >= 10 and id < 20"'
        )
    condition = options.pop("where", None)
    if condition is not None and streaming:
        raise SourceError('the option "where" is for batch queries: use where(…) of the stream')
    if condition is not None and not condition.strip():
        raise SourceError('the option "where" is empty')
    return condition


def _recreated(options: dict[str, str], mode: Mode, space: str | int | None) -> Recreated:
    if "recreated" in options and (mode is not Mode.CHANGES or space is None):
        raise SourceError('the option "recreated" is for the changes of one space')
    return _choice(options, "recreated", Recreated.FAIL)


def _hold_path(options: dict[str, str], streaming: bool) -> str | None:
    path = options.pop("hold_path", None)
    if path is not None and not streaming:
        raise SourceError('the option "hold_path" is for streams only')
    if path == "":
        raise SourceError('the option "hold_path" is empty')
    return path


_RANGES: Final = ("starting_lsn", "starting_time", "ending_lsn", "ending_time")


def _check_range(options: ReadOptions, given: Collection[str], *, streaming: bool) -> None:
    """Check the options that limit changes."""
    chosen = [name for name in _RANGES if getattr(options, name) is not None]
    if chosen and options.mode is not Mode.CHANGES:
        raise SourceError(f'the option "{chosen[0]}" is for changes only, not for {options.mode}')
    for name in chosen:
        if streaming and name.startswith("ending"):
            raise SourceError(f'the option "{name}" is for batch queries: a stream has no end')
    starts = [name for name in chosen if name.startswith("starting")]
    if "starting" in given:
        starts.append("starting")
    _check_order(options)
    for group in (starts, [name for name in chosen if name.startswith("ending")]):
        if len(group) > 1:
            raise SourceError(f'the options "{group[0]}" and "{group[1]}": only one is allowed')


def _check_order(options: ReadOptions) -> None:
    """Check that a range does not end before it begins."""
    start, end = options.starting_lsn, options.ending_lsn
    if isinstance(start, int) and isinstance(end, int):
        is_reversed = start > end
    elif isinstance(start, VClock) and isinstance(end, VClock):
        is_reversed = any(lsn > end[member] for member, lsn in start.items() if member in end)
    else:
        is_reversed = False
    if is_reversed:
        raise SourceError(f'the option "starting_lsn" is {start}, above the option "ending_lsn", {end}')
    if (
        options.starting_time is not None
        and options.ending_time is not None
        and options.starting_time > options.ending_time
    ):
        raise SourceError('the option "starting_time" is after the option "ending_time"')
