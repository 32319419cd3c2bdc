"""Random snippets of Lua that use UUIDs."""

from __future__ import annotations

from random import Random

JUNK = ("nil", "1", "true", "{}", "'x'", "''", "print", "uuid.NULL", "1LL", "require('ffi').new('void *')")
METHODS = ("str", "bin", "isnil", "time_low", "time_mid", "clock_seq_low", "other")


def uuid_text(random: Random) -> str:
    """A text of a UUID, sometimes with wrong or unusual characters."""
    text = list("".join(random.choices("0123456789abcdefABCDEF", k=32)))
    for place in (8, 13, 18, 23):
        text.insert(place, "-")
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        text[random.randrange(len(text))] = random.choice(" +-xg0fF{")
    if random.random() < 0.1:
        del text[random.randrange(len(text))]
    return "".join(text)


def _value(random: Random) -> str:
    if random.random() < 0.15:
        return random.choice(JUNK)
    if random.random() < 0.5:
        return f"uuid.fromstr('{uuid_text(random)}')"
    data = "".join(
        f"\\{random.choice((0, 255, random.randrange(256))):03d}"
        for _ in range(random.choice((16,) * 9 + (15,)))
    )
    order = random.choice(("", ", 'l'", ", 'b'", ", 'h'", ", 'n'", ", 'x'", ", nil", ", 1"))
    return f"uuid.frombin('{data}'{order})"


def uuid_snippet(random: Random) -> str:
    """A chunk that makes a UUID or two, and returns their text or what a method or a comparison returns."""
    one = f"local one, other = {_value(random)}, {_value(random)}\n"
    chance = random.random()
    order = random.choice(("", "'l'", "'b'", "'h'", "'n'", "'x'", "nil", "1", "{}"))
    if chance < 0.3:
        result = f"one:bin({order}), one:str(), one:isnil()"
    elif chance < 0.4:
        result = f"one.{random.choice(METHODS)}"
    elif chance < 0.5:
        result = f"uuid.NULL.{random.choice(('str', 'bin', 'isnil'))}({random.choice(('', 'one', 'other'))})"
    elif chance < 0.6:
        result = f"one {random.choice(('<', '<=', '+', '..'))} other"
    elif chance < 0.8:
        result = "one == other, other == one, one ~= other"
    else:
        result = "one, other"
    result = f"#uuid.bin({order}), #uuid.str(), uuid.new():isnil()" if chance > 0.95 else result
    return f"local uuid = require('uuid')\n{one}return {result}"
