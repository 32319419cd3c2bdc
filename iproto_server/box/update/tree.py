"""A tuple during an update: a tree in which only touched fields are split into parts.

Rules and nodes follow Tarantool, because they are visible to clients in the order of a map's keys and in the
errors about double updates.

- Bytes are an untouched field, or a value that an operation has inserted.
- A `Changed` is a field that an operation has assigned or computed.
- A `Leaf` is a field with one operation inside. The rest of the field, including the order of keys, stays
  unchanged.
- An `Array` or a `Map` is a value at which the paths of operations branch. A `Map` writes touched keys before
  the others, the latest first.
- A `Path` is a field in which several operations share the first steps of their paths.

An operation descends from branch to branch (`Branch.advance`) and opens closed nodes (`Node.opened`). They
stay open if the operation fails and is skipped, as in an UPSERT.
"""

from __future__ import annotations

from typing import Final

from iproto_server.box.types.json_path import JsonToken, TokenKind
from iproto_server.box.update.document import Documents
from iproto_server.box.update.edit import edit
from iproto_server.box.update.map_pairs import MapPairs, MapRun
from iproto_server.box.update.node import NO_DOUBLES, Branch, Doubles, Node, Part, inside_step
from iproto_server.box.update.operation import Operation
from iproto_server.box.update.packed_values import is_array, is_map
from iproto_server.box.update.path_cursor import PathCursor
from iproto_server.box.update.value import Computed, compute
from iproto_server.codec import msgpack as codec


class Changed(Node):
    """A field that an operation replaced.

    Parameters:
        value: the new value.
    """

    __slots__ = ("_value",)

    def __init__(self, value: Computed) -> None:
        self._value = value

    @classmethod
    def by_assignment(cls, operation: Operation) -> Changed:
        """Create the result of `=`."""
        value = operation.argument
        assert isinstance(value, bytes)
        return cls(Computed(value, value))

    @classmethod
    def by_computation(cls, cursor: PathCursor, old: Part) -> Changed:
        """Create the result of `+ - & | ^ :`.

        Raises:
            BoxError: the field has been changed already, or has the wrong type.
        """
        if not isinstance(old, bytes):
            raise cursor.double_update()
        operation = cursor.operation
        return cls(compute(operation.opcode, operation.argument, old, cursor.field))

    def opened(self, cursor: PathCursor) -> tuple[Node, Branch]:
        raise cursor.inside_replaced()

    def parts(self, doubles: Doubles) -> list[tuple[Part, Doubles]]:
        return [(self._value.as_double if () in doubles else self._value.raw, NO_DOUBLES)]


class Array(Branch):
    """An array with several operations inside, such as the tuple itself.

    Parameters:
        raw: the packed array.
        documents: the unchanged fields of the request.
    """

    __slots__ = ("items",)

    def __init__(self, raw: bytes, documents: Documents) -> None:
        self.items: list[Part] = [*documents.array(raw)]

    def advance(self, cursor: PathCursor) -> Branch | None:
        token = cursor.peek()
        if token.kind is TokenKind.END:
            raise cursor.no_such_field()
        if token.kind is not TokenKind.INDEX:
            raise cursor.error("can't update an array by a non-numeric index")
        cursor.position += 1
        return self.advance_to(cursor, token.index)

    def advance_to(self, cursor: PathCursor, index: int) -> Branch | None:
        """As `advance`, for a given item; a negative index counts from the end."""
        items = self.items
        operation = cursor.operation
        if not cursor.has_arrived:
            index = self._existing(cursor, index, len(items))
            item = items[index]
            if isinstance(item, bytes):
                items[index] = Leaf(item, cursor)
                return None
            items[index], branch = item.opened(cursor)
            return branch
        opcode = operation.opcode
        if opcode == "=" and index != len(items):
            index = self._existing(cursor, index, len(items))
            items[index] = Changed.by_assignment(operation)
        elif opcode in "=!":
            index = self._existing(cursor, index, len(items) + 1)
            assert isinstance(operation.argument, bytes)
            items.insert(index, operation.argument)
        else:
            index = self._existing(cursor, index, len(items))
            if opcode == "#":
                assert isinstance(operation.argument, int)
                del items[index : index + operation.argument]
            else:
                items[index] = Changed.by_computation(cursor, items[index])
        return None

    def adopt(self, step: int | str, child: Node) -> None:
        assert isinstance(step, int)
        self.items[step] = child

    @staticmethod
    def _existing(cursor: PathCursor, index: int, count: int) -> int:
        if not -count <= index < count:
            raise cursor.no_such_field()
        if index < 0:
            # From here on Tarantool's messages use the number from the start.
            index += count
            cursor.field_no = index
        return index

    def parts(self, doubles: Doubles) -> list[tuple[Part, Doubles]]:
        parts: list[tuple[Part, Doubles]] = [(codec.array_header(len(self.items)), NO_DOUBLES)]
        parts.extend((item, inside_step(doubles, index)) for index, item in enumerate(self.items))
        return parts


class Map(Branch):
    """A map with several operations inside.

    Parameters:
        raw: the packed map.
        documents: the unchanged fields of the request.
    """

    __slots__ = ("_pairs",)

    def __init__(self, raw: bytes, documents: Documents) -> None:
        self._pairs = MapPairs(raw, documents)

    def adopt(self, step: int | str, child: Node) -> None:
        assert isinstance(step, str)
        run = self._pairs.touch(step)
        assert run is not None
        run.value = child

    def advance(self, cursor: PathCursor) -> Branch | None:
        token = cursor.peek()
        if token.kind is TokenKind.END:
            raise cursor.no_such_field()
        if token.kind is not TokenKind.KEY:
            raise cursor.error("can't update a map by not a string key")
        cursor.position += 1
        run = self._pairs.touch(token.key)
        operation = cursor.operation
        opcode = operation.opcode
        if not cursor.has_arrived:
            if run is None:
                raise cursor.no_such_field()
            if isinstance(run.value, bytes):
                run.value = Leaf(run.value, cursor)
                return None
            run.value, branch = run.value.opened(cursor)
            return branch
        if opcode in "=!":
            if run is None:
                assert isinstance(operation.argument, bytes)
                self._pairs.add(token.key, operation.argument)
            elif opcode == "!":
                raise cursor.error("the key exists already")
            else:
                run.value = Changed.by_assignment(operation)
        elif opcode == "#":
            self._delete(cursor, run)
        elif run is None:
            raise cursor.no_such_field()
        else:
            run.value = Changed.by_computation(cursor, run.value)
        return None

    def _delete(self, cursor: PathCursor, run: MapRun | None) -> None:
        if cursor.operation.argument != 1:
            raise cursor.error("can delete only 1 field from a map in a row")
        if run is not None:
            self._pairs.delete(run)

    def parts(self, doubles: Doubles) -> list[tuple[Part, Doubles]]:
        pairs = self._pairs
        parts: list[tuple[Part, Doubles]] = [(codec.map_header(pairs.count), NO_DOUBLES)]
        for key, value in pairs.touched():
            parts.append((codec.pack(key), NO_DOUBLES))
            parts.append((value, inside_step(doubles, key)))
        for packed_key, packed_value in pairs.untouched():
            parts.append((packed_key, NO_DOUBLES))
            parts.append((packed_value, NO_DOUBLES))
        return parts


class Leaf(Node):
    """A field with one operation inside. Creating one applies the operation.

    Parameters:
        raw: the packed field.
        cursor: the operation, at this field.

    Raises:
        BoxError: the operation cannot be applied.
    """

    __slots__ = ("_edit", "_operation", "_raw", "_start")

    def __init__(self, raw: bytes, cursor: PathCursor) -> None:
        self._raw = raw
        self._operation = cursor.operation
        self._start = cursor.position
        self._edit = edit(raw, cursor)

    def opened(self, cursor: PathCursor) -> tuple[Node, Branch]:
        tokens = self._operation.tokens[self._start : -1]
        branch_point = _find_branch_point(self._raw, tokens, cursor)
        if branch_point.depth == len(tokens):
            raise cursor.inside_replaced()
        branch = branch_point.branch
        # The old bytes and the old argument give the same result again.
        apply(branch, PathCursor(self._operation, cursor.documents, self._start + branch_point.depth))
        return branch_point.above(branch, self._raw, tokens, self._operation.path), branch

    def parts(self, doubles: Doubles) -> list[tuple[Part, Doubles]]:
        if doubles:
            doubles = _inside_steps(doubles, self._operation.tokens[self._start : -1])
        before, value, after = self._edit
        return [
            (before, NO_DOUBLES),
            (value.as_double if () in doubles else value.raw, NO_DOUBLES),
            (after, NO_DOUBLES),
        ]


class Path(Node):
    """A field that several operations enter by the same steps, and the branch at their end.

    Parameters:
        raw: the packed field as it was.
        tokens: the steps.
        path: the path that contains `tokens`.
        branch: the branch at the end of the steps.
        start: the offset of the branch's old bytes within the field.
        length: their number.
    """

    __slots__ = ("_branch", "_length", "_path", "_raw", "_start", "_tokens")

    def __init__(
        self, raw: bytes, tokens: tuple[JsonToken, ...], path: str, branch: Branch, start: int, length: int
    ) -> None:
        self._raw = raw
        self._tokens = tokens
        self._path = path
        self._branch = branch
        self._start = start
        self._length = length

    def opened(self, cursor: PathCursor) -> tuple[Node, Branch]:
        tokens = self._tokens
        if cursor.starts_with(tokens, self._path):
            cursor.skip(len(tokens))
            return self, self._branch
        branch_point = _find_branch_point(self._raw, tokens, cursor)
        if branch_point.depth == len(tokens):
            # The same path in another spelling.
            return self, self._branch
        branch_point.branch.adopt(*self._shortened(branch_point, cursor.documents))
        return branch_point.above(branch_point.branch, self._raw, tokens, self._path), branch_point.branch

    def _shortened(self, branch_point: _BranchPoint, documents: Documents) -> tuple[int | str, Node]:
        """Return the step that leaves a branch on the path, and the rest of the path after it."""
        step = self._tokens[branch_point.depth].target
        assert step is not None
        rest = self._tokens[branch_point.depth + 1 :]
        if not rest:
            return step, self._branch
        child = documents.child(branch_point.raw, step)
        assert child is not None
        start = self._start - branch_point.start - child.start
        return step, Path(child.raw, rest, self._path, self._branch, start, self._length)

    def parts(self, doubles: Doubles) -> list[tuple[Part, Doubles]]:
        return [
            (self._raw[: self._start], NO_DOUBLES),
            (self._branch, _inside_steps(doubles, self._tokens)),
            (self._raw[self._start + self._length :], NO_DOUBLES),
        ]


def apply(branch: Branch | None, cursor: PathCursor) -> None:
    """Apply an operation, starting at a branch.

    Raises:
        BoxError: it cannot be applied.
    """
    while branch is not None:
        branch = branch.advance(cursor)


class _BranchPoint:
    """The array or map at which an operation leaves the path of others.

    Attributes:
        depth: the number of common steps.
        raw: the bytes of the array or map.
        start: the offset of these bytes within the field.
        branch: the array or map, unchanged.
    """

    __slots__ = ("branch", "depth", "raw", "start")

    def __init__(self, depth: int, raw: bytes, start: int, documents: Documents) -> None:
        self.depth = depth
        self.raw = raw
        self.start = start
        self.branch: Branch = Array(raw, documents) if is_array(raw) else Map(raw, documents)

    def above(self, branch: Branch, field: bytes, tokens: tuple[JsonToken, ...], path: str | None) -> Node:
        """Return the node for `field` that leads to `branch`."""
        if not self.depth:
            return branch
        assert path is not None
        return Path(field, tokens[: self.depth], path, branch, self.start, len(self.raw))


def _find_branch_point(field: bytes, tokens: tuple[JsonToken, ...], cursor: PathCursor) -> _BranchPoint:
    """Follow `tokens` as far as the path of an operation agrees.

    Raises:
        BoxError: the path ends there, its next step does not fit the value, or it is malformed.
    """
    raw, start = field, 0
    depth = 0
    for token in tokens:
        if cursor.peek().target != token.target:
            break
        cursor.position += 1
        depth += 1
        assert token.target is not None
        child = cursor.documents.child(raw, token.target)
        if child is None:
            # The path leads into a value that an operation inserted.
            end = cursor.peek().kind is TokenKind.END
            raise cursor.double_update() if end else cursor.inside_replaced()
        raw = child.raw
        start += child.start
    step = cursor.peek()
    if depth == len(tokens):
        if step.kind is TokenKind.END:
            raise cursor.double_update()
        _check_step(raw, step, cursor)
    else:
        _check_step(raw, step, cursor)
        if is_map(raw) and tokens[depth].kind is not TokenKind.KEY:
            raise cursor.error(_NOT_A_KEY)
    return _BranchPoint(depth, raw, start, cursor.documents)


_NOT_A_KEY: Final = "can not update map by non-string key"


def _check_step(raw: bytes, step: JsonToken, cursor: PathCursor) -> None:
    """Raise BoxError when `step` cannot lead anywhere from the value `raw`."""
    if is_array(raw):
        if step.kind is not TokenKind.INDEX:
            raise cursor.error("can not update array by non-integer index")
    elif is_map(raw):
        if step.kind is not TokenKind.KEY:
            raise cursor.error(_NOT_A_KEY)
    else:
        raise cursor.no_such_field()


def _inside_steps(doubles: Doubles, tokens: tuple[JsonToken, ...]) -> Doubles:
    for token in tokens:
        assert token.target is not None
        doubles = inside_step(doubles, token.target)
    return doubles
