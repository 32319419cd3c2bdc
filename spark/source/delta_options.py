"""The option names of Delta Lake's tables and change feeds, translated to those of this source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark_tarantool.source.errors import SourceError

_NAMES: Final = {
    "endingtimestamp": "ending_time",
    "endingversion": "ending_lsn",
    "maxbytespertrigger": "max_bytes_per_trigger",
    "startingtimestamp": "starting_time",
    "startingversion": "starting_lsn",
}
"""Names with a counterpart of the same meaning, in lower case."""

_STATES: Final = {"timestampasof": ("at_time", "time"), "versionasof": ("at_lsn", "lsn")}
"""Names that select a mode, and that mode's option."""

_FEED: Final = "readchangefeed"


def without_delta_names(given: Mapping[str, str], *, streaming: bool) -> dict[str, str]:
    """Translate Delta's names: `startingVersion` is `starting_lsn`, `versionAsOf` is `mode=at_lsn`.

    Parameters:
        given: Names in lower case, and values as text.
        streaming: Whether this is a query of `readStream`, where `readChangeFeed` without a start begins with
            the rows of the newest snapshot.

    Returns:
        The options under this source's names.

    Raises:
        SourceError: If an option is given under both names, or a value is wrong.
    """
    options = dict(given)
    feed = options.pop(_FEED, None)
    if feed is not None and feed.lower() not in ("true", "false"):
        raise SourceError(f'the option "readChangeFeed" is {feed!r}, not true or false')
    for name, own in _NAMES.items():
        if name in options:
            text = options.pop(name)
            if own == "starting_lsn" and text.lower() == "latest":
                own = "starting"
            _put(options, own, text, name)
    for name, (mode, own) in _STATES.items():
        if name in options:
            _put(options, own, options.pop(name), name)
            _put(options, "mode", mode, name)
    if feed is not None and feed.lower() == "true":
        _put(options, "mode", "changes", _FEED)
        if streaming and not {"starting", "starting_lsn", "starting_time"} & options.keys():
            options["starting"] = "snapshot"
    return options


def _put(options: dict[str, str], name: str, text: str, alias: str) -> None:
    if options.setdefault(name, text) != text:
        raise SourceError(f'the option "{alias}" contradicts the option "{name}"')
