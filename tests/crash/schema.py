"""The spaces of the load, and their rows.

Every row is a function of its key and its version, which every change increments, so that a row shows its
last change and whether it is complete. Every key belongs to one client, the only one that changes it.
"""

from __future__ import annotations

import random
import string
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

Row = list[Any]

CLIENTS: Final = 5
BUILDER: Final = CLIENTS - 1
"""The client that creates and drops spaces; the others write rows."""

ITEMS_PER_CLIENT: Final = 40
NAMES_PER_CLIENT: Final = 20
WORDS_PER_CLIENT: Final = 20
LABELS_PER_CLIENT: Final = 20
ACCOUNTS_PER_CLIENT: Final = 5
BALANCE: Final = 1000
"""The initial balance of an account."""

SHARES: Final = 20
"""The number of shares, which all traders change."""

BALLAST_AT_A_TIME: Final = 1000
EXTRA_SPACES: Final = 4


class LoadSpace(NamedTuple):
    """A space with a fixed id.

    Parameters:
        id: Its id, by which requests name it.
        name: Its name.
        key: The key of a row.
        owner: The client that a key belongs to.
    """

    id: int
    name: str
    key: Callable[[Row], Any]
    owner: Callable[[Any], int]


ITEMS: Final = LoadSpace(600, "items", lambda row: row[0], lambda key: key // 1000)
NAMES: Final = LoadSpace(601, "names", lambda row: row[0], lambda key: int(key.partition(":")[0]))
ACCOUNTS: Final = LoadSpace(602, "accounts", lambda row: row[0], lambda key: key // 100)
TRANSFERS: Final = LoadSpace(603, "transfers", lambda row: row[0], lambda key: int(key))
WORDS: Final = LoadSpace(607, "words", lambda row: row[0], lambda key: key // 1000)
LABELS: Final = LoadSpace(608, "labels", lambda row: row[0], lambda key: key // 1000)
LOAD_SPACES: Final[Mapping[str, LoadSpace]] = {
    space.name: space for space in (ITEMS, NAMES, ACCOUNTS, TRANSFERS, WORDS, LABELS)
}

SHARES_ID, DEALS_ID, NUMBERED_ID = 604, 605, 606
"""Spaces without an owning client."""

TOTALS: Final = "totals"
"""Rows `[name, count, sum]`: of the items, by a trigger, and of the transfers, by their procedure."""

BALLAST: Final = "ballast"
"""Rows that never change. They make snapshots and recoveries long enough for a kill."""

EXTRA: Final = "extra_"
"""The prefix of the names of the builder's spaces."""

PRIMARY, BY_VALUE = "primary", "by_value"
"""The indexes of the builder's spaces."""


def item_key(client: int, number: int) -> int:
    """Return the key of a client's item."""
    return client * 1000 + number


def name_key(client: int, number: int) -> str:
    """Return the key of a client's name."""
    return f"{client}:{number}"


def account_key(client: int, number: int) -> int:
    """Return the key of a client's account."""
    return client * 100 + number


def item(key: int, version: int) -> Row:
    """Build a row of the items: id, version, client, group (not unique), code (unique), text."""
    return [key, version, key // 1000, version % 7, f"{key}-{version}", text(key, version)]


def name(key: str, version: int) -> Row:
    """Build a row of the names, which have a HASH index: name, version, client, weight (may be nil), tags."""
    client, _, number = key.partition(":")
    weight = None if version % 5 == 0 else version / 2
    return [key, version, int(client), weight, {"version": version, "number": int(number)}]


def account(key: int, balance: int = BALANCE, number: int = 0) -> Row:
    """Build a row of the accounts: id, client, balance, number of the last transfer."""
    return [key, key // 100, balance, number]


def word(key: int, version: int) -> Row:
    """Build a row of the words: id, version, client, word (unique, ignoring case and accents)."""
    chance = random.Random(key << 32 | version)
    letters = "".join(chance.choices(_LETTERS, k=chance.randrange(1, 8)))
    return [key, version, key // 1000, f"{letters} {str(key).translate(_SPELLED)}"]


def label(key: int, version: int) -> Row:
    """Build a row of the labels: id, version, client, tags, which may be empty or repeated."""
    chance = random.Random(key << 32 | version)
    return [key, version, key // 1000, {"tags": chance.choices(_TAGS, k=chance.randrange(5))}]


def share(key: int) -> Row:
    """Build an initial row of the shares: id, balance, number of changes, seat (unique)."""
    return [key, BALANCE, 0, key]


@cache
def ballast(key: int) -> Row:
    """Build a row of the ballast: id, a number that is not unique, text that hardly compresses."""
    return [key, key % 100, random.Random(key).randbytes(100).hex()]


def extra(key: int, version: int) -> Row:
    """Build a row of the builder's spaces: id, version, value (not unique)."""
    return [key, version, f"value {version % 3}"]


def text(key: int, version: int) -> str:
    """Build text: some blocks are large enough for compression, a few rows larger than most blocks."""
    chance = random.Random(key << 32 | version)
    size = chance.choices((20, 200, 3_000, 40_000), (60, 35, 4, 1))[0]
    return chance.randbytes(size // 2).hex()


def by_word(rows: list[Row]) -> list[Row]:
    """Sort the words in the order of their index."""
    return sorted(rows, key=lambda row: _folded(row[3]))


def by_tag(rows: list[Row]) -> list[Row]:
    """Sort the labels in the order of their index, with each row once per tag."""
    tagged = [(tag, row[0], row) for row in rows for tag in set(row[3]["tags"])]
    return [row for _, _, row in sorted(tagged, key=lambda each: each[:2])]


ORDERS: Final[Mapping[tuple[str, str], Callable[[list[Row]], list[Row]]]] = {
    (WORDS.name, "word"): by_word,
    (LABELS.name, "tags"): by_tag,
}
"""The contents of indexes that differ from the rows of the primary one, given those rows."""


def _folded(text: str) -> str:
    """Reduce a word to what its collation compares."""
    letters = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).lower()


_LETTERS = string.ascii_letters + "éÉöÖñ"
_SPELLED = str.maketrans("0123456789", "abcDEfghij")
_TAGS = ("red", "green", "blue", "black", "white", "grey")
