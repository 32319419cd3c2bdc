"""The compiled module's functions and types; `module.c` lists them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final, Generic, NoReturn, Self, TypeVar, final, overload

from iproto_server.app import Procedure
from iproto_server.box.access.access_control import Credentials
from iproto_server.box.access.session import Session, SessionFacade
from iproto_server.box.api.box import Box
from iproto_server.box.api.space import Space as FacadeOfSpace
from iproto_server.box.api.space_index import Index as FacadeOfIndex
from iproto_server.box.catalog.catalog import Catalog
from iproto_server.box.index.index import Index
from iproto_server.box.key.key_def import KeyLayout, RowKeyPart
from iproto_server.box.key.key_encoding import Encoder
from iproto_server.box.memtx.auto_increment import AttachedSequence
from iproto_server.box.memtx.memtx_space import MemtxSpace, SystemHook
from iproto_server.box.tuple.format import Format
from iproto_server.box.txn.incremental_dict import IncrementalDict
from iproto_server.box.txn.journal import Journal
from iproto_server.box.txn.read_tracker import ReadTracker
from iproto_server.box.txn.transaction import TransactionManager, TransactionScope
from iproto_server.box.txn.trigger import TriggerList
from iproto_server.box.update import Doubles, Operations
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.connection.group_commit import OutgoingConnection
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.storage.xlog.decoder import Change

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

INTERFACE: int
FINGERPRINT: str

# MessagePack

class Raw:
    """A value that is packed already: `pack` copies its bytes.

    Parameters:
        raw: Exactly one well-formed MessagePack value; nothing checks it.
    """

    def __init__(self, raw: bytes) -> None: ...
    @property
    def raw(self) -> bytes:
        """The packed value."""

def pack(value: object, /) -> bytes:
    """Pack a value.

    Parameters:
        value: None, bool, int, float, str, bytes, bytearray, memoryview, list, tuple, dict,
            `decimal.Decimal`, `uuid.UUID`, `Datetime`, an aware `datetime.datetime`, `Interval`, `BoxError`,
            `ExtType`, `Raw`, or containers of these.

    Returns:
        One MessagePack value.

    Raises:
        BoxError: PROC_LUA, the value holds something that has no MessagePack form, or more than 1024 arrays
        and maps
            are inside each other.
    """

def unpack(raw: bytes | bytearray | memoryview, /) -> Any:
    """Unpack exactly one value.

    Parameters:
        raw: The whole message, of any size and from anywhere.

    Returns:
        The value. Arrays are lists, maps are dicts. Keys that a dict cannot have become tuples: arrays the
        tuple of their items, maps the tuple of their pairs. Extension types below zero are `Raw`.

    Raises:
        BoxError: INVALID_MSGPACK, `raw` is not exactly one well-formed value, or more than 1024 arrays and
        maps are
            inside each other.
    """

def is_valid(raw: bytes | bytearray | memoryview, /) -> bool:
    """Tell whether `raw` is exactly one well-formed value that `unpack` takes, without unpacking it."""

def skip(raw: bytes | bytearray | memoryview, start: int, /) -> int:
    """Find where a value ends without unpacking it.

    Parameters:
        raw: Bytes with a value, and maybe others around it.
        start: Where the value starts.

    Returns:
        The position just behind the value.

    Raises:
        BoxError: INVALID_MSGPACK, no well-formed value starts there.
    """

def split_array(raw: bytes | bytearray | memoryview, /) -> list[bytes]:
    """Cut an array into its items without unpacking them.

    Raises:
        BoxError: INVALID_MSGPACK, `raw` is not exactly one well-formed array.
    """

def split_map(raw: bytes | bytearray | memoryview, /) -> list[tuple[bytes, bytes]]:
    """Cut a map into its keys and values without unpacking them.

    Returns:
        Pairs of bytes, key and value, in the map's order; a repeated key is repeated here.

    Raises:
        BoxError: INVALID_MSGPACK, `raw` is not exactly one well-formed map.
    """

def first_items(raw: bytes | bytearray | memoryview, count: int, /) -> list[bytes]:
    """Cut the first items out of an array, and leave the others.

    Parameters:
        raw: An array.
        count: The number of items; there are fewer if the array has fewer.

    Raises:
        BoxError: INVALID_MSGPACK, there is no array, or one of these items is malformed.
    """

def array_count(raw: bytes | bytearray | memoryview, /) -> int:
    """Return how many items an array claims to have.

    Raises:
        BoxError: INVALID_MSGPACK, `raw` does not begin with an array.
    """

def map_count(raw: bytes | bytearray | memoryview, /) -> int:
    """Return how many pairs a map claims to have.

    Raises:
        BoxError: INVALID_MSGPACK, `raw` does not begin with a map.
    """

def array_header(count: int, /) -> bytes:
    """Return the bytes that announce an array of `count` items, in the shortest form."""

def map_header(count: int, /) -> bytes:
    """Return the bytes that announce a map of `count` pairs, in the shortest form."""

# Tuples

class Tuple(Raw, Sequence[Any]):
    """An immutable row of a space, for procedures and triggers.

    Fields are read by 0-based number (`task[0]`), by name (`task["status"]`), or all together (`list(task)`,
    `task.tomap()`).

    Parameters:
        raw: The MessagePack array as stored.
        format: The format with the names of fields; None for a tuple without space.
        fields: The decoded fields, if known.
    """

    def __init__(self, raw: bytes, format: Format | None = None, fields: list[Any] | None = None) -> None: ...
    @property
    def format(self) -> Format | None:
        """The format with the names of fields."""

    @property
    def fields(self) -> list[Any]:
        """The decoded fields. The list is shared: do not change it."""

    def assume(self, other: Tuple, number: int, value: object, /) -> None:
        """Use the decoded fields of another tuple, which differs in one field only."""

    @overload
    def __getitem__(self, field: int | str, /) -> Any: ...
    @overload
    def __getitem__(self, field: slice, /) -> list[Any]: ...
    def get(self, field: int | str, default: object = None) -> Any:
        """The field, or `default` if the tuple or its format has no such field."""

    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def transform(self, start: int, count: int, /, *values: object) -> Tuple:
        """A copy with some fields replaced by others; it has no space.

        Parameters:
            start: The number of the first field to replace; the number of fields appends.
            count: How many fields to replace, from 0 to all from there on.
            values: The values in their place. If they are as many, all fields keep their names; otherwise the
                copy has no names.

        Raises:
            IndexError: The tuple does not have these fields.
            TypeError: A number is not an integer.
            BoxError: PROC_LUA, a value cannot be packed.

        Source: Tarantool reference, box.tuple, `tuple_object:transform()`, whose fields begin at 1.
        """

    def tomap(self, *, names_only: bool = True) -> dict[str | int, Any]:
        """The named fields as a dict, in the format's order.

        Parameters:
            names_only: Omit the 1-based numbers, under which Lua's `tuple:tomap()` repeats every field.

        Source: Tarantool reference, box.tuple, `tuple_object:tomap()`.
        """

    def as_map(self, *, names_only: bool = True) -> TupleMap:
        """The named fields as a read-only mapping.

        A procedure that returns it need not decode the fields.

        Parameters:
            names_only: As for `tomap`.
        """

@final
class TupleMap(Raw, Mapping[str | int, Any]):
    """A tuple as a read-only mapping with the items of `Tuple.tomap`.

    It is packed from the tuple's bytes, so that each value keeps the form that it is stored in.

    Parameters:
        row: The tuple.
        names_only: As for `Tuple.tomap`.
    """

    def __init__(self, row: Tuple, names_only: bool = True) -> None: ...
    @property
    def raw(self) -> bytes:
        """The packed map.

        Raises:
            BoxError: INVALID_MSGPACK, the tuple is no array.
        """

    def __getitem__(self, key: str | int, /) -> Any: ...
    def __iter__(self) -> Iterator[str | int]: ...
    def __len__(self) -> int: ...

# Figures

@final
class Durations:
    """Counts how long ago moments were, by intervals. A `Histogram` is made of it.

    Parameters:
        now: Returns the time in nanoseconds.
        bounds: The upper bounds of the intervals, in nanoseconds, ascending, 64 at most.
        earliest: Moments up to this one, 0 or later, are not known.
        noted: Moments by any key.

    Raises:
        ValueError: There are too many bounds, or `earliest` is negative.
    """

    def __init__(
        self,
        now: Callable[[], int],
        bounds: tuple[int, ...],
        earliest: int,
        noted: IncrementalDict[Any, int],
    ) -> None: ...
    @property
    def calls(self) -> int:
        """The number of calls of `since`."""

    @property
    def counts(self) -> list[int]:
        """The number of durations in each interval, the last one without a bound; of known moments only."""

    @property
    def sum(self) -> float:
        """The sum of all durations, in nanoseconds."""

    def since(self, moment: object, key: object, /) -> int:
        """Count how long ago a moment was, and return now.

        Parameters:
            moment: Nanoseconds; anything but an integer is not known. A moment in the future, as after the
                clock has stepped back, counts as less than any time, and adds nothing to the sum.
            key: If a moment is noted for it, that counts instead, and is forgotten.
        """

# Transactional dicts

ABSENT: Final[Any]
"""The state of a missing key."""

class DictState(Generic[_Key, _Value]):
    """What every `TransactionalDict` has.

    Parameters:
        box: The box.
        transactions: Its transactions.
        values: The values.
    """

    def __init__(
        self, box: TransactionScope, transactions: TransactionManager, values: MutableMapping[_Key, _Value], /
    ) -> None: ...
    @property
    def _box(self) -> TransactionScope: ...
    @property
    def _transactions(self) -> TransactionManager: ...
    @property
    def values(self) -> MutableMapping[_Key, _Value]:
        """The values by key; do not change them directly."""

class TwoWayDict(DictState[_Key, _Value]):
    """The dicts of a `TransactionalTwoWayDict`, which are always changed together.

    In a stream's transaction, `put` and `remove` call `_put_in_stream` and `_remove_in_stream` of the
    subclass. If the running transaction is undone, its method `_restore` is called with each changed key and
    the state before.

    Parameters:
        box: The box.
        transactions: Its transactions.
        values, keys: The dicts to use.
    """

    def __init__(
        self,
        box: TransactionScope,
        transactions: TransactionManager,
        values: IncrementalDict[_Key, _Value],
        keys: dict[_Value, IncrementalDict[_Key, int | None]],
        /,
    ) -> None: ...
    @property
    def keys(self) -> dict[_Value, IncrementalDict[_Key, int | None]]:
        """The keys of each value that any key has, with their moments; do not change them directly."""

    def put(self, key: _Key, value: _Value, moment: int | None = None) -> None:
        """Store a value, and when that was; None keeps the moment of a key that is there."""

    def remove(self, key: _Key) -> int | None:
        """Remove a key, which may be missing.

        Returns:
            When it was put; None if it is missing, or that is unknown.
        """

    def moment(self, key: _Key, /) -> int | None:
        """Return when a key was put; None if it is missing, or that is unknown."""

    def _load(self, key: _Key, /) -> Any:
        """Return the state of a key: its value and its moment, or `ABSENT`."""

    def _store(self, key: _Key, state: Any, /) -> None:
        """Set the state of a key, outside of transactions."""

# The stack

def ensure_stack() -> None:
    """Ensure that there is stack to change a row and to undo that; 100 nested calls are kept.

    Raises:
        RecursionError: There is less.
    """

# The engine's memory, of all boxes of the process together

def set_memory_limit(limit: int | None, reserve: int, /) -> None:
    """Set the limit of the engine's memory.

    Parameters:
        limit: Bytes; None for no limit.
        reserve: Bytes of it that are not for new rows.

    Raises:
        ValueError: The reserve is larger than the limit.
    """

def memory_allows(old_size: int, size: int, entries: int, more: int, may_use_reserve: bool, /) -> bool:
    """Tell whether a row may be added, or take another one's place.

    Parameters:
        old_size: Bytes of the row that is there; 0 for none.
        size: Bytes of the new row.
        entries: Number of entries that are added to indexes.
        more: Bytes that the change needs beside the row and its entries.
        may_use_reserve: Whether a new row may use the reserve.
    """

def memory_usage() -> tuple[int, int, int, int]:
    """Return the engine's memory in bytes: held for rows, used by rows, indexes, and what is kept outside."""

def load_lua(path: str, /) -> None:
    """Find the functions of LuaJIT that `luaopen_iproto` and what it gives to Lua code need.

    Parameters:
        path: The file of a library that is loaded, and that exports LuaJIT's C API.

    Raises:
        OSError: The library is not loaded, or it lacks a function.
    """

def memory_outside(change: int, /) -> None:
    """Count rows and keys that are kept outside of the engine.

    Parameters:
        change: Bytes that were allocated or, if negative, freed.

    Raises:
        ValueError: More is freed than was allocated.
    """

def release_free_memory() -> None:
    """Give free memory back to the operating system: building large indexes leaves some in malloc's heap."""

# Ordered maps

class IncrementalTable:
    """The base of `IncrementalDict`, which declares its methods."""

class RowKey:
    """Makes the key of a row in an index from its decoded fields and, maybe, its encoded primary key.

    A part is (field number, type, whether it may be nil, encoder, reader or None). The encoder encodes what
    compiled code does not know. The reader finds the value of a part inside a field.

    Parameters:
        parts: The parts of the index.
        rest: The parts behind them.
        rest_if_nil: Whether what is behind the index's parts is there only if one of those is nil.
        has_tail: Whether the encoded primary key is the end.
    """

    def __init__(
        self,
        parts: tuple[RowKeyPart, ...],
        rest: tuple[RowKeyPart, ...] = ...,
        rest_if_nil: bool = False,
        has_tail: bool = False,
    ) -> None: ...
    def __call__(self, fields: Sequence[Any], primary_key: bytes = ..., /) -> bytes: ...

class ClientKey:
    """Checks and encodes a client's key, full or partial.

    Parameters:
        parts: (type, whether it may be nil, encoder). The encoder encodes what compiled code does not know,
            or raises BoxError KEY_PART_TYPE.
    """

    def __init__(self, parts: tuple[tuple[str, bool, Encoder], ...], /) -> None: ...
    def __call__(self, key: Sequence[Any], /) -> bytes: ...
    def exact(self, key: Sequence[Any], /) -> bytes:
        """Encode a full key without nil.

        Raises:
            BoxError: EXACT_MATCH (19) for too few or too many values, KEY_PART_TYPE (18) for a value of the
                wrong type.
        """

class RowCheck:
    """Checks the decoded fields of a row.

    Parameters:
        rules: The type of each field, whether it may be nil, and the accepted Python types; None for all.
        exact_field_count: The number of fields; 0: any number.
        explain: Raises the error of a row that does not fit.
    """

    def __init__(
        self,
        rules: tuple[tuple[str, bool, frozenset[type] | None], ...],
        exact_field_count: int,
        explain: Callable[[Sequence[Any]], None],
        /,
    ) -> None: ...
    def __call__(self, fields: Sequence[Any], /) -> None: ...

class Tree:
    """The ordered map of an index, from keys to values, all of them byte strings.

    Keys are made from rows by a layout, or by a function where that needs Python.

    Parameters:
        layout: How a key is made from a row, if the values are rows or the rows' primary keys.
        primary: The index of the rows, if the values are their primary keys.
        is_unique: Whether no two rows may have the same key.
        is_multikey: Whether a row may have any number of keys.
        is_ordered: Whether clients may ask for more than a whole key, or all rows.
        is_exact: Whether keys are unique and no part may be nil.
        keys_of: Makes the keys of a row from its decoded fields and its encoded primary key.
        key_of, encode_key: Make the key of a row, and that of a client.
    """

    def __init__(
        self,
        layout: KeyLayout | None = None,
        primary: Tree | None = None,
        *,
        is_unique: bool = True,
        is_multikey: bool = False,
        is_ordered: bool = True,
        is_exact: bool = True,
        keys_of: Callable[[Sequence[Any], bytes], list[bytes]] | None = None,
        key_of: Callable[[Sequence[Any], bytes], bytes] | None = None,
        encode_key: Callable[[Sequence[Any]], bytes] | None = None,
    ) -> None: ...
    @property
    def holds_rows(self) -> bool:
        """Whether it is a primary index to whose rows the entries of secondary indexes may refer."""

    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __getitem__(self, key: bytes, /) -> bytes: ...
    def __setitem__(self, key: bytes, value: bytes, /) -> None: ...
    def __delitem__(self, key: bytes, /) -> None: ...
    def __sizeof__(self) -> int: ...
    def encode_unique_key(self, key: Sequence[Any], /) -> bytes:
        """Encode the key of a single row.

        Raises:
            BoxError: MORE_THAN_ONE_TUPLE (41) if the index is not unique, EXACT_MATCH (19) for a partial key,
                KEY_PART_TYPE (18) for a value of the wrong type or nil.
        """

    def bsize(self) -> int:
        """Return the bytes that the entries take, without the rows."""

    def get(self, key: bytes, default: bytes | None = None, /) -> bytes | None:
        """Return the value of a key, or the default."""

    def insert(self, key: bytes, value: bytes, /) -> int:
        """Add an entry, unless there is one with its key; return the number of added entries."""

    def set(self, key: bytes, value: bytes, /) -> None:
        """Add or overwrite an entry."""

    def remove(self, key: bytes, /) -> None:
        """Remove an entry. Raises KeyError if there is none."""

    def adopt(self, other: Tree, /) -> None:
        """Share the entries of an index of the same kind from now on."""

    def shares_entries(self, other: Tree, /) -> bool:
        """Tell whether both share their entries after `adopt`."""

    def first(self, low: bytes, /) -> tuple[bytes, bytes] | None:
        """Return the first entry whose key is not below `low`."""

    def first_value(self, prefix: bytes, /) -> bytes | None:
        """Return the value of the first key that starts with `prefix`."""

    def last(self, high: bytes | None, /) -> tuple[bytes, bytes] | None:
        """Return the last entry whose key is below `high`, which is not empty; None for no bound."""

    def count_between(self, low: bytes | None, high: bytes | None, /) -> int:
        """Count the entries whose keys are from `low` on and below `high`; None for no bound."""

    def range_values(
        self, low: bytes | None, high: bytes | None, offset: int, limit: int, is_descending: bool, /
    ) -> list[bytes]:
        """Return the values of the keys from `low` on and below `high`.

        Parameters:
            low, high: None for no bound.
            offset: Number of values to skip.
            limit: Greatest number of values.
            is_descending: Whether the last one comes first.
        """

    def after(self, key: bytes, count: int, /) -> tuple[list[bytes], list[bytes]]:
        """Return the keys and the values of the first `count` entries behind a key."""

    def load(self, keys: list[bytes], values: list[bytes], /) -> None:
        """Fill an empty tree at once; the keys are in strictly ascending order."""

    def append(self, keys: list[bytes], values: list[bytes], /) -> bool:
        """Add entries behind all others.

        Returns:
            Whether that was done. If not, nothing has changed: the keys are not in strictly ascending order
            and above all others.
        """

    def build_from(self, primary: Tree, /) -> bool:
        """Fill an empty tree from the rows of the primary index.

        Returns:
            Whether that was done. If not, nothing has changed: the tree does not refer to these rows, two
            rows have the same key, or the engine cannot make a key.
        """

    def rows_fit(self, check: object, /) -> bool:
        """Tell whether all rows are known to fit a format's check; if not, a closer look is needed."""

    def values_size(self) -> int:
        """Return the bytes of all values."""

    def clear(self) -> None:
        """Remove every entry."""

@final
class TreeView:
    """The values of a map as they were when the view was opened, in the order of their keys.

    The map may change between two calls; what has changed ahead of the view is kept as it was. The view is
    closed after the last value.

    Parameters:
        tree: A map that does not refer to another one's rows.
    """

    def __init__(self, tree: Tree) -> None: ...
    @property
    def is_done(self) -> bool:
        """Whether there are no more values."""

    @property
    def kept(self) -> int:
        """The number of changed entries that are kept as they were."""

    def take(self, count: int, size: int, /) -> list[bytes]:
        """Return the next values. There may be none although more follow.

        Parameters:
            count: The greatest number of entries to look at, at least 1.
            size: Bytes of values that are enough, at least 1.

        Raises:
            MemoryError: There is no memory; the view is closed.
        """

    def take_numbered(
        self, head: bytes, number: int, tail: bytes, count: int, size: int, /
    ) -> tuple[bytes, int]:
        """Return the next values in one piece, and how many there are.

        Parameters:
            head, tail: Bytes in front of each value, before and after its number.
            number: The number of the first value; it is packed as MessagePack.
            count, size: As for `take`.

        Raises:
            MemoryError: There is no memory; the view is closed.
        """

    def close(self) -> None:
        """Read no more, and drop what is kept; harmless if the view is closed."""

# Hooks: what compiled code calls in rare cases

def set_hook(name: str, function: Callable[..., Any], /) -> None:
    """Set a Python function that compiled code calls; each is set once, by the module that has it.

    Parameters:
        name: "framing_error" makes a `FramingError` of a reason and, for a frame that is too large, its size.
            "request_error" makes a `RequestError` of the request's number, a code and the code's argument.
            "decode_extension" makes the value of an extension that `unpack` has met. Its parameters are the
            type, which is not negative, the payload, and what the payload of an error (type 3) describes: its
            unpacked value; None if that is malformed, and for other types. "encode_extension" returns the
            type and the payload of a value that `pack` has no form for, or of an integer beyond 64 bits. A
            payload that is not bytes is packed. None stands for a tuple that is packed as an array.
        function: The function.

    Raises:
        LookupError: There is no hook of that name.
    """

# Constants

REQUESTS_AT_ONCE: int
"""So many requests that come together are handled without looking at the time."""

LARGE_ANSWER: int
"""Bytes: smaller answers never wait, and a connection with fewer unsent bytes is not slow."""

SHORT_KEY: int
"""Bytes: a longer packed key is that of no row."""

LARGEST_OPERATION_COUNT: Final[int]
"""The greatest number of update operations in one request, as in Tarantool."""

KEY_PARTS_MAX: Final[int]
"""The greatest number of parts of a key that the engine makes from a row."""

PRIVILEGE_READ: Final[int]
PRIVILEGE_WRITE: Final[int]
PRIVILEGE_EXECUTE: Final[int]
PRIVILEGE_USAGE: Final[int]
"""Bits of `_priv.privilege` that compiled code looks at."""

# Frames: header and body of requests, without the length before them

@final
class Frames:
    """A queue of frames.

    Parameters:
        frames: The first frames.
    """

    def __init__(self, frames: Iterable[bytes] = (), /) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def append(self, frame: bytes, /) -> None:
        """Add a frame at the end."""

    def appendleft(self, frame: bytes, /) -> None:
        """Add a frame in front of the others."""

    def extend(self, frames: Iterable[bytes], /) -> None:
        """Add several frames at the end."""

    def popleft(self) -> bytes:
        """Remove the first frame and return it.

        Raises:
            IndexError: There is none.
        """

class FrameDecoder:
    """Cuts the incoming bytes of a connection into frames, wherever the network has split them.

    It holds only what has arrived of the last frame, in a piece of memory that doubles as it grows; a frame
    that is announced but not sent costs nothing. Of much that arrives together, the frames are cut out a part
    at a time.

    Parameters:
        max_frame: Maximum number of bytes of a frame, without the length before it.
        at_once: Frames that begin within so many bytes are cut out; the others are left to `more`.
    """

    def __init__(self, max_frame: int, at_once: int = ...) -> None: ...
    @property
    def buffered(self) -> int:
        """The number of bytes that are held."""

    @property
    def has_part(self) -> bool:
        """Whether there is a part of a frame of which more has to come."""

    @property
    def has_more(self) -> bool:
        """Whether there is something that `more` has to look at."""

    def feed(self, data: bytes, /) -> list[bytes]:
        """Return the frames that the next bytes of the stream complete; while there is `more`, none.

        Raises:
            FramingError: There is no valid length, or it is above the maximum. The decoder is of no use then.
        """

    def feed_to(self, frames: Frames, data: bytes, /) -> None:
        """Append the frames that the next bytes of the stream complete.

        Raises:
            FramingError: As for `feed`; the frames before the fault were appended.
        """

    def more(self) -> list[bytes]:
        """Return the next frames of what was fed.

        Raises:
            FramingError: As for `feed`, and for a frame above the limit.
        """

    def more_to(self, frames: Frames, /) -> None:
        """Append the next frames of what was fed.

        Raises:
            FramingError: As for `more`; the frames before the fault were appended.
        """

    def limit_to(self, max_frame: int, /) -> None:
        """Take frames up to another size from now on, if that is below the maximum.

        A larger one that is not above the maximum is left to `more`, which refuses it: the limit may be
        another one when the frames before it were handled.

        Parameters:
            max_frame: Maximum number of bytes of a frame.
        """

    def clear(self) -> None:
        """Drop what is held."""

@final
class FrameDecoder15(FrameDecoder):
    """Cuts the bytes of a Tarantool 1.5 connection into requests, each with its header of twelve bytes."""

# Requests and responses

@final
class Request:
    """A request.

    Attributes:
        type: Its type; usually a member of `RequestType`, but any byte may come.
        sync: The number to answer with.
        schema_version: The schema version that the client expects; 0 for none.
        stream_id: The stream that the request belongs to; 0 for none.
        body: The values that belong to the type, by `Key`; empty for types without a body. Numbers and texts
            are unpacked. Arrays, maps and the values of SQL stay packed, checked to be well-formed: nobody
            knows yet whether the client may do what it asks for, and there may be millions of items.
    """

    def __init__(
        self, type: int, sync: int, schema_version: int, stream_id: int, body: dict[int, Any]
    ) -> None: ...
    @property
    def type(self) -> int: ...
    @property
    def sync(self) -> int: ...
    @property
    def schema_version(self) -> int: ...
    @property
    def stream_id(self) -> int: ...
    @property
    def body(self) -> dict[int, Any]: ...

def decode_request(frame: bytes, /) -> Request:
    """Decode a frame.

    Parameters:
        frame: Header and body, without the length before them; it may hold anything.

    Raises:
        RequestError: The frame is malformed, or lacks a key that its type needs.
    """

def encode_response(status: int, sync: int, schema_version: int, body: bytes, /) -> bytes:
    """Encode a response: its length, header and body.

    Parameters:
        status: 0, CHUNK, or the number of an error with ERROR_FLAG.
        sync: The request's number.
        schema_version: The current schema version.
        body: A packed map.

    Returns:
        The whole frame.
    """

def encode_tuples(sync: int, schema_version: int, raws: Sequence[bytes], /) -> bytes:
    """Encode a response with rows, or other values.

    Parameters:
        sync: The request's number.
        schema_version: The current schema version.
        raws: The rows or values, each packed.

    Returns:
        The whole frame.
    """

def encode_result(sync: int, schema_version: int, result: object, /) -> bytes:
    """Encode the response to a CALL.

    Parameters:
        sync: The request's number.
        schema_version: The current schema version.
        result: What the procedure has returned: None is no value, a tuple several, and anything else one.

    Returns:
        The whole frame.

    Raises:
        BoxError: PROC_LUA, a value has no MessagePack form.
    """

@final
class Output:
    """The frames that a connection has to send: in one piece, and in the order in which they were added."""

    @property
    def size(self) -> int:
        """The number of bytes."""

    @property
    def has_logged(self) -> bool:
        """Whether a response depends on rows that are not in the log yet."""

    @property
    def has_pushed(self) -> bool:
        """Whether a frame was pushed."""

    def add(self, response: bytes, is_logged: bool, /) -> None:
        """Append a response.

        Parameters:
            response: The whole frame.
            is_logged: Whether it depends on rows that are not in the log yet.
        """

    def push(self, frame: bytes, /) -> None:
        """Append a frame that answers no request and depends on no rows."""

    def take(self) -> bytes:
        """Return all frames, joined; nothing is left."""

    def take_pushed(self) -> bytes:
        """Return the pushed frames, joined; the others are left."""

    def hand_over(self) -> Output:
        """Return all frames in another output; nothing is left."""

    def refuse(self, refusal: Callable[[bytes], bytes], /) -> None:
        """Replace the responses that depend on rows which could not be written.

        Parameters:
            refusal: Makes what is sent instead of a response. Frames that are added meanwhile come last.
        """

@final
class Traffic:
    """Counts the bytes of all connections of a server.

    Attributes:
        received: Bytes received.
        sent: Bytes handed to transports.
    """

    received: int
    sent: int

# Connections, and what they share

PHASE_SERVING: Final[int]
PHASE_HELD: Final[int]
PHASE_CLOSING: Final[int]
PHASE_DRAINING: Final[int]
PHASE_ENDED: Final[int]
WAIT_READER: Final[int]
WAIT_ROOM: Final[int]
WAIT_REQUEST: Final[int]

class SchedulerState:
    """The base class of `FairScheduler`.

    Attributes:
        has_others: Whether a connection was served at once since this was last set to False.
    """

    has_others: bool

class OutputBatch:
    """The base class of `Batch`: the connections with responses to send at the end of an iteration.

    A subclass has a method `_schedule`, which sets `_is_scheduled` and awaits the end of the iteration.
    """

    _is_scheduled: bool

    @property
    def _connections(self) -> list[OutgoingConnection]: ...
    def _schedule(self) -> None: ...
    def add(self, connection: OutgoingConnection, /) -> None:
        """Send the connection's responses at the end of this iteration."""

    def _take_connections(self) -> list[OutgoingConnection]:
        """Return the connections, and forget them."""

class SharedState:
    """The base class of `ServerState`: the counters and limits that all connections share.

    Attributes:
        traffic: Counts the bytes of all connections.
        transactions: The transaction manager of the box.
        in_flight: The number of unanswered requests.
        parked: The number of those that wait for other requests.
        in_flight_max: The number of requests that may be in flight without being parked.
        parked_max: The number of requests that may be parked.
        write_high_water: Bytes that a connection may leave unsent before its requests wait.
    """

    traffic: Traffic
    transactions: TransactionManager
    in_flight: int
    parked: int
    in_flight_max: int
    parked_max: int
    write_high_water: int

    @property
    def is_full(self) -> bool:
        """Whether as many requests are in flight, or parked, as allowed."""

class ConnectionState:
    """The base class of `Connection`: the state that every request looks at.

    A subclass has the methods `_received` (bytes that are not just a few whole requests), `_handle_many`
    (more than REQUESTS_AT_ONCE), `_hold` (requests that have to wait), `_sent` (after sending while it is
    held or closing) and `admit` (whether there is room for a large answer).

    Parameters:
        server: What all connections share.

    Attributes:
        in_flight: The number of unanswered requests.
    """

    in_flight: int
    _phase: int
    _waits: int
    _held_size: int
    _has_output: bool
    _has_received: bool
    _has_hurried: bool
    _output: Output
    _decoder: FrameDecoder
    _handle: Callable[..., None]

    def __new__(cls, server: SharedState, *arguments: object) -> Self: ...
    @property
    def is_closing(self) -> bool:
        """Whether no more requests are handled."""

    @property
    def is_held(self) -> bool:
        """Whether it is not read from, and requests are held."""

    @property
    def is_lost(self) -> bool:
        """Whether the transport is closed."""

    @property
    def is_behind(self) -> bool:
        """Whether the client has so much to read that it gets no events."""

    def must_hold(self) -> bool:
        """Whether the next request has to wait: for the client to read, for room, for requests in flight to
        end, or for the one before it."""

    def data_received(self, data: bytes, /) -> None:
        """Handle every request that is complete now."""

    def _handle_frames(self, frames: Frames, end: float, /) -> bool:
        """Handle requests, one at least, until a time, or until the next one has to wait.

        Parameters:
            frames: The requests; those that are handled are taken away.
            end: The time, by `perf_counter`.

        Returns:
            Whether there is time for more.
        """

    def _served_at_once(self) -> None:
        """Tell the fair scheduler, unless requests had to be held just before."""

    def reply(self, response: bytes, /) -> None:
        """Send a response at the end of this loop iteration, after its rows are in the log."""

    def push(self, frame: bytes, /) -> None:
        """Send a frame that answers no request, and depends on no rows, at the end of this loop iteration."""

    def send_output(self) -> None:
        """Hand all responses to the transport, in one piece."""

    def _send(self, data: bytes, /) -> None:
        """Hand bytes to the transport, unless it is closing."""

def send_outputs(connections: list[OutgoingConnection], /) -> None:
    """Have connections send all their responses, in this order."""

# Who asks, and what is asked for

class CredentialsState:
    """The base class of `Credentials`.

    Attributes:
        universe: The privileges on the universe, as a sum of bits.
    """

    universe: int

class SessionState:
    """The base class of `Session`.

    Attributes:
        id: The session's number.
        sync: The sync of its last request.
        credentials: The user whose privileges apply.
    """

    id: int
    sync: int
    credentials: Credentials

class CurrentSession:
    """The base class of `SessionFacade`.

    Attributes:
        current: The session of the request that is handled.
        background: The session of the server's own work.
    """

    current: Session
    background: Session

    def id(self) -> int:
        """The current session's number."""

class ProcedureState:
    """The base class of `Procedure`; see there."""

    def __init__(
        self, name: str, function: Callable[..., Any], is_async: bool, is_autonomous: bool = False
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def function(self) -> Callable[..., Any]: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def is_autonomous(self) -> bool: ...
    @property
    def packed(self) -> int:
        """Bits of the arguments that stay packed."""

class ProcedureTable:
    """The base class of `Calls`: the procedures that clients may call, by name."""

    _by_name: dict[str, Procedure]

class PendingResult:
    """The base class of `Waiter`: the result of a procedure that is answered later."""

class SpaceTable:
    """The base class of `SpaceRegistry`.

    Attributes:
        spaces: The spaces by number.
        schema_version: A counter of schema changes.
    """

    spaces: dict[int, MemtxSpace]
    schema_version: int

@final
class FastPath:
    """Answers PING, CALL and row requests of users who may do everything, and counts them.

    Parameters:
        answer: Answers any other request.
        dispatcher: Encodes errors (`failed`, `raised`), and answers calls that wait (`wait`).
        calls: Has the procedures.
        setuid: The owners of functions that run as their owners, by name.
        box: The first argument of procedures.
        transactions, sessions, catalog: Those of the box.
    """

    def __init__(
        self,
        answer: Callable[[ClientConnection, bytes], None],
        dispatcher: Dispatcher,
        calls: ProcedureTable,
        setuid: dict[str, int],
        box: Box,
        transactions: TransactionManager,
        sessions: CurrentSession,
        catalog: SpaceTable,
        /,
    ) -> None: ...
    def __call__(self, connection: ClientConnection, frame: bytes, /) -> None:
        """Answer one request: the frame is its header and body."""

    def take_counts(self) -> dict[int, int]:
        """Return the number of requests by type that it has answered since the last call."""

# The log

BLOCK_SIZE: Final[int]
"""A block that has reached so many bytes is written, with all of the transaction that made it so large."""

HEAD_SIZE: Final[int]
"""The size of a block's head in bytes."""

MARKER_SIZE: Final[int]
"""The size in bytes of the marker at the beginning of a block."""

PLAIN_MARKER: Final[bytes]
"""The beginning of a block."""

ZSTD_MARKER: Final[bytes]
"""The beginning of a compressed block."""

def with_head(marker: bytes, payload: bytes, crc: int, /) -> bytes:
    """Put a block's head in front of its payload.

    Parameters:
        marker: `PLAIN_MARKER` or `ZSTD_MARKER`.
        payload: The bytes that follow the head.
        crc: The checksum of the payload.

    Returns:
        The block.

    Raises:
        OSError: The payload has more than 2**31 - 1 bytes.
    """

def decode_head(head: bytes, /) -> tuple[bool, int, int]:
    """Read a block's head.

    Parameters:
        head: `HEAD_SIZE` bytes.

    Returns:
        Whether the payload is compressed, its size in bytes, and its checksum.

    Raises:
        ValueError: These bytes are no head of a block.
    """

def encode_row_head(
    type: int, replica_id: int, group_id: int, lsn: int, timestamp: float, tsn: int, flags: int, /
) -> bytes:
    """Encode the head of a row, which leaves out zeros.

    The parameters are the attributes of `Row` in `storage/xlog/row.py`.
    """

@final
class LogRows:
    """Rows of committed transactions that wait to be written together. The length is their size in bytes.

    Parameters:
        replica_id: This member's id, 1 to 31.
        lsn: The LSN of the row before the first one.
        local_lsn: The same for rows of local spaces.
    """

    timestamp: float
    """The time of the commits, in seconds since 1970."""

    def __init__(self, replica_id: int, lsn: int, /, local_lsn: int = 0) -> None: ...
    def __len__(self) -> int: ...
    @property
    def lsn(self) -> int:
        """The LSN of the last row."""

    @property
    def local_lsn(self) -> int:
        """The LSN of the last row of a local space."""

    def append(self, requests: Sequence[tuple[int, bytes]], /) -> None:
        """Append a transaction of requests in spaces that are replicated.

        Parameters:
            requests: Request types and bodies.

        Raises:
            RuntimeError: The rows are being written.
        """

    def blocks(self) -> list[bytes]:
        """Return the rows of each block; no more may be appended.

        The rows of a transaction are in one block. A block ends as soon as it has `BLOCK_SIZE` bytes.
        """

    def following(self) -> LogRows:
        """Return an object without rows whose numbers continue those of this one."""

class LogState:
    """The state of the write-ahead log that compiled code uses; its policy is in `storage/wal.py`.

    Parameters:
        waiting: The rows to be written next.
        clock: Returns the time in seconds since 1970.
        is_stored: Whether rows are written; otherwise they only get numbers.
    """

    waiting: LogRows
    """The rows to be written next."""

    clock: Callable[[], float]
    """Returns the time in seconds since 1970."""

    is_closed: bool
    """Whether each transaction is passed to `refuse`."""

    writes_at_commit: bool
    """Whether `write` is called for each transaction."""

    def __init__(self, waiting: LogRows, clock: Callable[[], float], is_stored: bool, /) -> None: ...
    def append(self, transaction: Transaction, /) -> bool:
        """Append the rows of one transaction; rows of temporary spaces are left out.

        Parameters:
            transaction: Its statements are the changes.

        Returns:
            Whether they are still to be written.

        Raises:
            BoxError: WAL_IO, the log is closed, or the last write and that of this transaction failed.
        """

    def refuse(self) -> NoReturn:
        """Raise the error for a transaction of a closed log; in subclasses."""

    def write(self) -> None:
        """Write the rows that wait; in subclasses."""

    def effect_of(self, statement: Statement, /) -> tuple[bool, bool]:
        """Tell how a statement is logged whose row has an effect, such as a new space; in subclasses.

        Returns:
            Whether a new row is logged as INSERT, and whether it is not replicated.
        """

@final
class BlockRows(Sequence[Change]):
    """The rows of an uncompressed block, a sequence of their changes.

    Parameters:
        payload: The packed rows.

    Raises:
        ValueError: A row is malformed.
    """

    def __init__(self, payload: bytes, /) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, position: int) -> Change: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Change]: ...
    @property
    def is_whole(self) -> bool:
        """Whether the last row ends a transaction."""

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows as tuples of the attributes of `Row`."""

    def tuples(self) -> list[tuple[int, bytes]]:
        """Return the space ids and tuples of a snapshot's block, without rows about the replica set."""

    def run(self, position: int, /) -> tuple[int, list[bytes], int]:
        """Return the next tuples of a snapshot in one space.

        Parameters:
            position: The position of a row with a tuple.

        Returns:
            The id of the space, the tuples, and the position behind them.
        """

    def append_to(self, position: int, tree_of: Callable[[int], object], /) -> int:
        """Append tuples of a snapshot to primary indexes, up to the first one that needs a closer look.

        Parameters:
            position: The position of the first row.
            tree_of: Maps the id of a space to the tree for its rows; None if they cannot be appended.

        Returns:
            The position of the tuple that needs a closer look; the number of rows if there is none.
        """

@final
class LogReplayer:
    """Applies rows of logs to primary indexes, up to the first row that needs a closer look.

    Parameters:
        target_of: Maps the id of a space to the tree of its rows, and the space; None if its rows are not
            applied here.
    """

    def __init__(self, target_of: Callable[[int], tuple[Tree, Space] | None], /) -> None: ...
    def apply(self, rows: BlockRows, position: int, member: int, lsn: int, last: int, /) -> int:
        """Apply rows of a member.

        Parameters:
            rows: The rows of a block that ends a transaction.
            position: The position of the first row.
            member: The member whose rows are applied.
            lsn: The LSN of the first row.
            last: The greatest LSN of rows that are applied.

        Returns:
            The position of the row that needs a closer look; the number of rows if there is none.
        """

    def forget(self) -> None:
        """Forget the answers of `target_of`, because definitions have changed."""

# Spaces and transactions

class FormatBase:
    """The format of rows, as the engine sees it."""

    check: Callable[[Sequence[Any]], None]
    names: dict[str, int]
    packed_names: tuple[bytes, ...]

class Triggers:
    """The functions of an event."""

    functions: tuple[Callable[..., Any], ...]
    is_off: bool

class HeldRecord:
    """The record of a row that was taken out of its space; see `Space.exchange`."""

class Space:
    """A space of the engine: its rows, found and changed through its indexes.

    Parameters:
        transactions: The transaction manager, to which every change is reported.
    """

    id: int
    is_temporary: bool
    is_local: bool
    is_dropped: bool
    bsize: int
    format: Format
    attached: AttachedSequence | None
    system_hook: SystemHook | None
    on_replace: TriggerList
    before_replace: TriggerList
    _is_custom: bool

    def __init__(self, transactions: TransactionManager, /) -> None: ...
    @property
    def indexes(self) -> dict[int, Index]: ...
    @property
    def primary(self) -> Index | None: ...
    @property
    def secondaries(self) -> tuple[Index, ...]: ...
    @property
    def _transactions(self) -> TransactionManager: ...
    def _use_indexes(
        self,
        indexes: dict[int, Index],
        primary: Index | None,
        secondaries: tuple[Index, ...],
        fields: tuple[Iterable[int], ...],
        /,
    ) -> None: ...
    def _use_doubles(self, numbers: Iterable[Any], /) -> None: ...
    def insert(self, row: Tuple, /) -> Tuple:
        """Store a new row and return it.

        Raises:
            BoxError: The row does not fit the format, or a unique index has its key (TUPLE_FOUND).
        """

    def replace(self, row: Tuple, /) -> Tuple:
        """Store a row in the place of the one with the same primary key, if there is one, and return it."""

    def update(self, index_id: int, key: list[Any], operations: Operations, /) -> Tuple | None:
        """Change the row with a whole key of a unique index; return the new row, None if there is none.

        Raises:
            BoxError: An operation does not fit, the result does not fit the format, or the primary key would
                change.
        """

    def upsert(self, row: Tuple, operations: Operations, /) -> None:
        """Store the row, or apply the operations to the row that has its primary key.

        Raises:
            BoxError: As `insert` and `update`, except what Tarantool's upsert ignores (missing fields, a
                changed primary key).
        """

    def delete(self, index_id: int, key: list[Any], /) -> Tuple | None:
        """Remove the row with a whole key of a unique index and return it; None if there is none."""

    def exchange(self, key: bytes, row: bytes | HeldRecord | None, /) -> HeldRecord | None:
        """Put a row, or none, in the place of the one with a key in all indexes, without a statement.

        Parameters:
            key: The encoded primary key.
            row: The packed row, or a record that was taken out of this space, which is then in it again.

        Returns:
            The record that was there; None if there was none. Statements that are not written yet may refer
            to it: it has to be put in again, or kept as long as they are.
        """

    def find(self, index_id: int, key: list[Any], /) -> bytes | None:
        """Return the packed row with a whole key of a unique index, or None.

        Raises:
            BoxError: NO_SUCH_INDEX_ID (35), MORE_THAN_ONE_TUPLE (41) for a non-unique index, EXACT_MATCH (19)
                for a partial key, KEY_PART_TYPE (18).
        """

    def first(self, index_id: int, key: list[Any], /) -> bytes | None:
        """Return the first packed row in an index's order whose key begins with `key`, or None."""

# Facades

class SpaceFacade:
    """A space as procedures see it: the base class of `box.api.space.Space`.

    A class has the method `_check_access`, which is called if the caller lacks privileges on all spaces.

    Parameters:
        core: The engine space.
        session: The current session.

    Attributes:
        primary: The index with number 0.
        exempts_updates, exempts_new_rows: Whether changes through this facade may exceed the memory limit.
    """

    primary: FacadeOfIndex
    exempts_updates: bool
    exempts_new_rows: bool

    def __init__(self, core: MemtxSpace, session: SessionFacade, /) -> None: ...
    @property
    def _core(self) -> MemtxSpace: ...
    @property
    def _session(self) -> SessionFacade: ...
    def core(self) -> MemtxSpace:
        """Return the engine space. Raises BoxError NO_SUCH_SPACE if the space was dropped."""

    def readable(self) -> MemtxSpace:
        """Return the engine space, if the caller may read it. Raises BoxError ACCESS_DENIED."""

    def writable(self) -> MemtxSpace:
        """Return the engine space, if the caller may change it. Raises BoxError ACCESS_DENIED."""

    def insert(self, values: Sequence[Any]) -> Tuple:
        """Store a new row.

        Raises:
            BoxError: TUPLE_FOUND (3) if a unique index has its key; or an error of the format.
        """

    def replace(self, values: Sequence[Any]) -> Tuple:
        """Store a row, replacing the one with the same primary key."""

    def get(self, key: object) -> Tuple | None:
        """Return the row with that primary key, or None."""

    def select(
        self,
        key: object = None,
        *,
        iterator: str | int | None = None,
        offset: int = 0,
        limit: int = ...,
        after: str | Tuple | Sequence[Any] | None = None,
    ) -> list[Tuple]:
        """Return the rows that an iterator over the primary index finds; see `Index.select`."""

    def update(self, key: object, operations: Sequence[Sequence[Any]]) -> Tuple | None:
        """Change the row with that primary key; see `Index.update`."""

    def upsert(self, values: Sequence[Any], operations: Sequence[Sequence[Any]]) -> None:
        """Store the row, or apply the operations to the row that has its primary key."""

    def delete(self, key: object) -> Tuple | None:
        """Remove the row with that primary key and return it; None if there is none."""

class IndexFacade:
    """An index as procedures see it: the base class of `box.api.space_index.Index`.

    Parameters:
        space: The space.
        index_id: The index's number.
    """

    def __init__(self, space: SpaceFacade, index_id: int) -> None: ...
    @property
    def id(self) -> int: ...
    @property
    def space(self) -> FacadeOfSpace: ...
    def get(self, key: object) -> Tuple | None:
        """Return the row with a full key of a unique index, or None.

        Raises:
            BoxError: MORE_THAN_ONE_TUPLE (41) for a non-unique index, EXACT_MATCH (19) for a partial key.
        """

    def first(self, key: object = None) -> Tuple | None:
        """Return the first row in the index's order whose key begins with `key`, or None."""

    def min(self, key: object = None) -> Tuple | None:
        """Return the row with the smallest key (that begins with `key`), or None."""

    def max(self, key: object = None) -> Tuple | None:
        """Return the row with the greatest key (that begins with `key`), or None."""

    def select(
        self,
        key: object = None,
        *,
        iterator: str | int | None = None,
        offset: int = 0,
        limit: int = ...,
        after: str | Tuple | Sequence[Any] | None = None,
    ) -> list[Tuple]:
        """Return the rows that an iterator finds.

        Parameters:
            key: The key, full, partial or empty.
            iterator: ALL, EQ, REQ, GT, GE, LT or LE; by default EQ, or ALL for an empty key.
            offset: The number of rows to skip.
            limit: The greatest number of rows to return.
            after: The row, or the position (see `Index.tuple_pos`), after which to start.

        Raises:
            BoxError: The key or the iterator does not fit the index, or `after` does not fit them.
        """

    def update(self, key: object, operations: Sequence[Sequence[Any]]) -> Tuple | None:
        """Change the row with a full key. Return the new row; None if there is none.

        Parameters:
            key: The key.
            operations: Such as `("=", "status", "T")` or `("+", 2, 1)`; field numbers are 0-based.
        """

    def delete(self, key: object) -> Tuple | None:
        """Remove the row with a full key and return it; None if there is none."""

class SpacesFacade:
    """Facades of spaces, found as items or attributes: the base class of `box.api.space.Spaces`.

    What is not in `_found` is found by the class's method `__missing__`.
    """

    def __init__(self, catalog: Catalog, /) -> None: ...
    @property
    def _catalog(self) -> Catalog: ...
    @property
    def _found(self) -> dict[str | int, FacadeOfSpace]:
        """What was found since the schema changed."""

    def __getitem__(self, which: str | int, /) -> FacadeOfSpace: ...
    def __getattr__(self, name: str, /) -> FacadeOfSpace: ...

class IndexesFacade:
    """Facades of the indexes of a space: the base class of `box.api.space_index.Indexes`."""

    def __init__(self, space: SpaceFacade, /) -> None: ...
    @property
    def _space(self) -> FacadeOfSpace: ...
    def __getitem__(self, which: str | int, /) -> FacadeOfIndex: ...
    def __getattr__(self, name: str, /) -> FacadeOfIndex: ...

def as_key(key: object, /) -> list[Any]:
    """Return a key as a list of parts. A single part needs no list; None is the empty key."""

def as_row(values: Sequence[Any], space: MemtxSpace, /) -> Tuple:
    """Return a row as a space stores it.

    Raises:
        BoxError: TUPLE_NOT_ARRAY (22) if the values are neither a list nor a tuple, or an error of packing.
    """

class Statement(tuple[Any, ...]):
    """One change of one row: `old` None is an insertion, `new` None a deletion.

    Attributes:
        space: The space.
        key: The row's encoded primary key.
        old, new: The packed rows.
        primary: The space's primary index at that moment.
        undo: Reverts the effect of a system row (a created space, a built index); None for other rows.
    """

    space: MemtxSpace
    key: bytes
    old: bytes | None
    new: bytes | None
    primary: Index
    undo: Callable[[], None] | None

@final
class Savepoint:
    """A point of a transaction to roll back to."""

    @property
    def statements(self) -> Transaction: ...
    @property
    def nesting(self) -> int: ...

@final
class Transaction(Sequence[Statement]):
    """The statements of a transaction, and its callbacks.

    Parameters:
        manager: The transaction manager.
    """

    on_commit: list[Callable[[], object]]
    on_rollback: list[Callable[[], object]]

    def __init__(self, manager: TransactionEngine) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, place: int, /) -> Statement: ...
    @overload
    def __getitem__(self, place: slice, /) -> Sequence[Statement]: ...
    def put_in(self) -> None:
        """Put the rows into the spaces again; the rows that are there become the old ones."""

    def take_out(self) -> None:
        """Take the rows out of the spaces."""

    def has_effect(self, start: int, /) -> bool:
        """Tell whether a statement from a place on has changed the schema."""

class TransactionEngine:
    """The engine of a box: the running transaction, and those that are not written yet.

    Attributes:
        journal: Receives the rows of committed transactions.
        unwritten: Committed transactions that the journal has not written yet, the oldest first.
        is_writing: Whether transactions taken from `unwritten` are being written and may still be undone.
        is_write_due: Whether a transaction was added to `unwritten` since this was last set to False.
        has_logged: Whether an unwritten transaction was committed since this was last set to False. It tells
            whether the response to a request depends on the request's own rows.
        write_soon: Called when a write becomes due.
        is_read_only: Whether changes are refused, except in temporary and local spaces.
        interactive: The interactive transaction whose request is running; it tracks reads.
        take_out: Takes the rows of a suspended interactive transaction out of the spaces; None if there are
            none. Code that reads outside of a transaction calls it first.
        on_change: Called with each committed transaction, and with each one undone after its commit; returns
            callbacks to run afterwards. None without interactive transactions.
        nesting: The number of nested statements whose triggers are running.
        statements: The running transaction, or None.
    """

    journal: Journal
    is_writing: bool
    is_write_due: bool
    has_logged: bool
    write_soon: Callable[[], object]
    is_read_only: bool
    take_out: Callable[[], object] | None
    on_change: Callable[[Sequence[Statement], bool], list[Callable[[], object]]] | None
    nesting: int

    @property
    def statements(self) -> Transaction | None: ...
    @property
    def unwritten(self) -> list[Transaction]: ...
    def begin(self) -> None:
        """Start a transaction.

        Raises:
            BoxError: ACTIVE_TRANSACTION (79) if one is running.
            RecursionError: There is not enough stack to undo it.
        """

    def commit(self) -> None:
        """Pass the rows to the journal, then run the commit callbacks.

        Raises:
            BoxError: The journal has refused the rows; the transaction is undone.
        """

    def rollback(self) -> None:
        """Undo the whole transaction; without one, do nothing."""

    def savepoint(self) -> Savepoint:
        """Return a savepoint at the present state of the running transaction."""

    def rollback_to_savepoint(self, savepoint: Savepoint, /) -> None:
        """Undo the statements since a savepoint, and drop or run their callbacks."""

    def check_nesting(self) -> None:
        """Raise BoxError SUB_STMT_MAX (121) if no further nested statement is allowed."""

    def on_commit(self, callback: Callable[[], object], /) -> None:
        """Call `callback` right after the commit of the running transaction; at once if there is none."""

    def on_rollback(self, callback: Callable[[], object], /) -> None:
        """Call `callback` if the running transaction is undone, also after a failed write."""

    def take_unwritten(self) -> list[Transaction]:
        """Remove and return the unwritten transactions; the caller writes or undoes them."""

    def undo(self, transactions: list[Transaction], /) -> None:
        """Undo committed transactions that could not be written, and run their rollback callbacks.

        Parameters:
            transactions: All transactions since the first failed one, the oldest first.
        """

    @property
    def interactive(self) -> ReadTracker | None: ...
    def attach(self, tracker: ReadTracker, transaction: Transaction, /) -> None:
        """Continue an interactive transaction, whose rows are in the spaces."""

    def detach(self) -> Transaction | None:
        """Interrupt the running interactive transaction; return None if it has ended meanwhile."""

    def untrack(self) -> None:
        """Let the running transaction end as one that is not interactive."""

    def notify_undone(self, transaction: Transaction, /) -> None:
        """Notify triggers of statements that are undone already, the newest first."""

def apply_request(
    request: tuple[bytes, Mapping[str, int], int], raw: bytes, doubles: Doubles, /
) -> bytes | None:
    """Apply the operations of a request to whole fields of a packed row.

    Parameters:
        request: The packed operations, the field numbers by name, and the index base.
        raw: The packed row.
        doubles: The places of fields of type `double`.

    Returns:
        The new row; None if operations are left to Python: those that fail, or concern extension types.
    """

class LuaFunction:
    """A function of Lua. Its results are `Raw`: None for no value, a tuple for several."""

    def __call__(self, *arguments: object) -> object: ...

class LuaProcedure:
    """A function of Lua that clients call by name, for a `Procedure`.

    Parameters:
        name: its name; None: the first argument is a text to evaluate.
        waits: returns the waiter of a call that waits, by its number.
    """

    packed_arguments: tuple[int, ...]

    def __init__(self, name: str | None, waits: Callable[[int], object]) -> None: ...
    def __call__(self, box: Box, *arguments: object) -> object: ...

def lua_attach(
    box: Box,
    ask: Callable[[str, list[Any]], object],
    finished: Callable[[int, object, BaseException | None], object],
    /,
) -> None:
    """Attach Lua code to a box.

    Parameters:
        box: The database.
        ask: Carries out a rare function of `box`, by its name and a list of arguments.
        finished: Gets the number of a call that has waited, and its results or its error.
    """

def lua_detach() -> None:
    """Detach Lua code from the box."""

def lua_begin() -> None:
    """Begin a run of Lua code, or a call within one."""

def lua_end() -> None:
    """End what `lua_begin` has begun; collect garbage if the run has needed more memory than its limit."""

def watch_lua(signals: int, next: int, threshold: float, grace: float, second_grace: float, /) -> None:
    """Watch runs of Lua code in a thread that needs no lock of Python's, which compiled Lua code may keep.

    If a run does not end after a signal to stop, it ends the process, two seconds later than Python could.

    Parameters:
        signals: A pipe from which numbers of signals are read.
        next: A pipe to which they are written, and 0 when `long_lua` has a report.
        threshold: Seconds after which a run is long.
        grace: Seconds from the first signal to stop to the end of the process.
        second_grace: The same from the second one.

    Raises:
        OSError: The thread cannot be started.
        RuntimeError: Lua code is watched already.
    """

def unwatch_lua() -> None:
    """End the thread of `watch_lua`."""

def long_lua() -> tuple[float, str | None] | None:
    """Return the seconds of a long run, and its traceback; None without a report.

    There is no traceback of compiled code (JIT).
    """
