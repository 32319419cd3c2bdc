"""A client with random requests, the same for the same seed and the same answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.interchange.database.home import Inhabitant
from tests.interchange.database.statements import (
    Statement,
    atomically,
    call,
    create_index,
    create_space,
    delete,
    in_vain,
    insert,
    replace,
    snapshot,
    update,
    upsert,
)

_PARTS: list[tuple[int, str]] = [(1, "unsigned"), (2, "string"), (3, "integer"), (4, "scalar")]
_SCALARS: list[Any] = [None, False, True, 0, -7, 2**64 - 1, 0.5, "", "text", b"", b"\xff", Decimal("1.50")]
_INDEX = 288


@dataclass(slots=True)
class _Space:
    """An existing space.

    Parameters:
        id: Its number.
        name: Its name.
        indexes: Its indexes by id: name, parts, and whether it is unique.
    """

    id: int
    name: str
    indexes: dict[int, tuple[str, list[int], bool]] = field(default_factory=dict)


class RandomClient:
    """Changes rows and definitions at random, and records the existing spaces and indexes.

    Parameters:
        seed: The seed.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._spaces: list[_Space] = []
        self._users: list[str] = []
        self._named = 0
        self.accepted = 0

    def work(self, inhabitant: Inhabitant, count: int) -> None:
        """Send changes, some of which are refused.

        Parameters:
            inhabitant: The server.
            count: The number of changes.
        """
        changes: list[Callable[[Inhabitant], bool]] = [
            self._change_row,
            self._transact,
            self._create_space,
            self._create_index,
            self._redefine,
            self._principals,
            lambda inhabitant: self._ask(inhabitant, snapshot()),
        ]
        weights = [200, 30, 4, 6, 8, 4, 1]
        while not self._spaces or not self._spaces[0].indexes:
            self._create_space(inhabitant)
        for change in self._random.choices(changes, weights, k=count):
            self.accepted += change(inhabitant)

    @staticmethod
    def _ask(inhabitant: Inhabitant, statement: Statement) -> bool:
        return inhabitant.client.request(statement.kind, statement.body).ok

    # -- rows --

    def _row(self) -> list[Any]:
        draw = self._random
        row: list[Any] = [draw.randrange(30), draw.choice(["", "a", "b", "żółw"]) * draw.randrange(3)]
        row += [draw.randrange(-9, 9), draw.choice(_SCALARS)][: draw.randrange(1, 3)]
        return row + [["more", {"of": draw.random()}]] * (len(row) == 4 and draw.randrange(2))

    def _key(self, parts: list[int]) -> list[Any]:
        row = [*self._row(), None]
        return [row[part] for part in parts]

    def _operations(self) -> list[list[Any]]:
        draw = self._random
        if draw.randrange(8) == 0:
            # As a single operation: together with others it can damage Tarantool 2.6.
            return [["=", "[5].of", 1]]
        one: list[list[Any]] = [
            ["=", 1, draw.choice(["", "c", "d" * 50])],
            ["=", 3, draw.choice(_SCALARS)],
            ["+", 2, draw.randrange(-5, 5)],
            ["|", 2, 1],
            [":", 1, 0, 1, "spliced"],
            ["!", 4, "inserted"],
            ["#", 4, 1],
            ["=", -1, "the last"],
        ]
        return draw.sample(one, draw.randrange(1, 4))

    def _change_row(self, inhabitant: Inhabitant) -> bool:
        draw = self._random
        space = draw.choice(self._spaces)
        unique = [number for number, (_, _, is_unique) in space.indexes.items() if is_unique]
        index = draw.choice(unique or [0])
        key = self._key(space.indexes[index][1] if unique else [0])
        return self._ask(
            inhabitant,
            draw.choice(
                [
                    insert(space.id, *self._row()),
                    insert(space.id, *self._row()),
                    replace(space.id, *self._row()),
                    upsert(space.id, self._row(), *self._operations()),
                    update(space.id, key, *self._operations(), index=index),
                    delete(space.id, *key, index=index),
                ]
            ),
        )

    def _transact(self, inhabitant: Inhabitant) -> bool:
        draw = self._random
        steps = []
        for _ in range(draw.randrange(2, 9)):
            name, method = (
                draw.choice(self._spaces).name,
                draw.choice(["replace", "replace", "insert", "delete"]),
            )
            steps.append([name, method, [draw.randrange(30)] if method == "delete" else self._row()])
        return self._ask(inhabitant, draw.choice([atomically, atomically, in_vain])(*steps))

    # -- definitions --

    def _new_name(self) -> str:
        self._named += 1
        return f"name{self._named}"

    def _create_space(self, inhabitant: Inhabitant) -> bool:
        draw = self._random
        space = _Space(1000 + draw.randrange(20), self._new_name())
        kind: dict[str, Any] = draw.choice([{}, {}, {"is_local": True}, {"temporary": True}])
        if draw.randrange(2):
            kind["format"] = [
                {"name": f"f{number}", "type": type_name, "is_nullable": number == 4}
                for number, type_name in _PARTS
            ]
        if not self._ask(inhabitant, create_space(space.id, space.name, **kind)):
            return False
        self._spaces.append(space)
        parts = draw.choice([[0], [0], [1, 0], [2, 0, 1]])
        return self._add_index(inhabitant, space, parts, draw.choice(["tree", "hash"]), is_unique=True)

    def _create_index(self, inhabitant: Inhabitant) -> bool:
        draw = self._random
        parts = draw.sample(range(4), draw.randrange(1, 4))
        is_unique = draw.random() < 0.4
        kind = "hash" if is_unique and 3 not in parts and draw.randrange(2) else "tree"
        return self._add_index(inhabitant, draw.choice(self._spaces), parts, kind, is_unique=is_unique)

    def _add_index(
        self, inhabitant: Inhabitant, space: _Space, parts: list[int], kind: str, *, is_unique: bool
    ) -> bool:
        number = next(number for number in range(100) if number not in space.indexes)
        name = self._new_name()
        described = [(*_PARTS[part], {"is_nullable": True} if part == 3 else {}) for part in parts]
        statement = create_index(space.name, name, *described, type=kind, unique=is_unique, id=number)
        done = self._ask(inhabitant, statement)
        if done:
            space.indexes[number] = (name, parts, is_unique)
        return done

    def _redefine(self, inhabitant: Inhabitant) -> bool:
        draw = self._random
        space = draw.choice(self._spaces)
        match draw.randrange(6):
            case 0 if len(self._spaces) > 3:
                self._spaces.remove(space)
                return self._ask(inhabitant, call(f"box.space.{space.name}:drop"))
            case 1:
                name, space.name = space.name, self._new_name()
                return self._ask(inhabitant, call(f"box.space.{name}:rename", space.name))
            case 2 if max(space.indexes, default=0):
                number = draw.choice(sorted(space.indexes)[1:])
                name, *_ = space.indexes.pop(number)
                return self._ask(inhabitant, call(f"box.space.{space.name}.index.{name}:drop"))
            case 3 if max(space.indexes, default=0):
                return self._alter_index(inhabitant, space)
            case 4:
                types = draw.choice([["unsigned", "string", "integer"], ["scalar", "any"], []])
                fields = [{"name": f"n{number}", "type": name} for number, name in enumerate(types)]
                return self._ask(inhabitant, call(f"box.space.{space.name}:format", fields))
            case _:
                return self._ask(inhabitant, call(f"box.space.{space.name}:truncate"))

    def _alter_index(self, inhabitant: Inhabitant, space: _Space) -> bool:
        draw = self._random
        number = draw.choice(sorted(space.indexes))
        parts = [0, 2] if number == 0 else draw.sample(range(3), 2)
        described = [[part, _PARTS[part][1]] for part in parts]
        done = self._ask(inhabitant, update(_INDEX, [space.id, number], ["=", 5, described]))
        if done:
            name, _, is_unique = space.indexes[number]
            space.indexes[number] = (name, parts, is_unique)
        return done

    def _principals(self, inhabitant: Inhabitant) -> bool:
        draw = self._random
        if not self._users or draw.randrange(3) == 0:
            self._users.append(self._new_name())
            return self._ask(inhabitant, call("box.schema.user.create", self._users[-1]))
        user = draw.choice(self._users)
        match draw.randrange(4):
            case 0:
                self._users.remove(user)
                return self._ask(inhabitant, call("box.schema.user.drop", user))
            case 1:
                return self._ask(inhabitant, call("box.schema.user.passwd", user, self._new_name()))
            case number:
                verb = "grant" if number == 2 else "revoke"
                name = draw.choice(self._spaces).name
                return self._ask(inhabitant, call(f"box.schema.user.{verb}", user, "read", "space", name))
