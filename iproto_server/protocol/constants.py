"""Numbers of the protocol, with Tarantool's names without prefix."""

from enum import IntEnum
from typing import Final


class RequestType(IntEnum):
    """Request types, the low 8 bits of the header's type."""

    SELECT = 1
    INSERT = 2
    REPLACE = 3
    UPDATE = 4
    DELETE = 5
    CALL_16 = 6
    AUTH = 7
    EVAL = 8
    UPSERT = 9
    CALL = 10
    EXECUTE = 11
    NOP = 12
    PREPARE = 13
    BEGIN = 14
    COMMIT = 15
    ROLLBACK = 16
    INSERT_ARROW = 17
    DELETE_RANGE = 18
    RAFT = 30
    RAFT_PROMOTE = 31
    RAFT_DEMOTE = 32
    RAFT_CONFIRM = 40
    RAFT_ROLLBACK = 41
    PING = 64
    JOIN = 65
    SUBSCRIBE = 66
    VOTE_DEPRECATED = 67
    VOTE = 68
    FETCH_SNAPSHOT = 69
    REGISTER = 70
    JOIN_META = 71
    JOIN_SNAPSHOT = 72
    ID = 73
    WATCH = 74
    UNWATCH = 75
    EVENT = 76
    WATCH_ONCE = 77


class Key(IntEnum):
    """Keys of values in a header (below 0x10) or a body."""

    REQUEST_TYPE = 0x00
    SYNC = 0x01
    REPLICA_ID = 0x02
    LSN = 0x03
    TIMESTAMP = 0x04
    SCHEMA_VERSION = 0x05
    SERVER_VERSION = 0x06
    GROUP_ID = 0x07
    TSN = 0x08
    FLAGS = 0x09
    STREAM_ID = 0x0A
    SPACE_ID = 0x10
    INDEX_ID = 0x11
    LIMIT = 0x12
    OFFSET = 0x13
    ITERATOR = 0x14
    INDEX_BASE = 0x15
    FETCH_POSITION = 0x1F
    KEY = 0x20
    TUPLE = 0x21
    FUNCTION_NAME = 0x22
    USER_NAME = 0x23
    INSTANCE_UUID = 0x24
    REPLICASET_UUID = 0x25
    VCLOCK = 0x26
    EXPR = 0x27
    OPS = 0x28
    BALLOT = 0x29
    TUPLE_META = 0x2A
    OPTIONS = 0x2B
    OLD_TUPLE = 0x2C
    NEW_TUPLE = 0x2D
    AFTER_POSITION = 0x2E
    AFTER_TUPLE = 0x2F
    DATA = 0x30
    ERROR_24 = 0x31
    METADATA = 0x32
    BIND_METADATA = 0x33
    BIND_COUNT = 0x34
    POSITION = 0x35
    SQL_TEXT = 0x40
    SQL_BIND = 0x41
    SQL_INFO = 0x42
    STMT_ID = 0x43
    REPLICA_ANON = 0x50
    ID_FILTER = 0x51
    ERROR = 0x52
    TERM = 0x53
    VERSION = 0x54
    FEATURES = 0x55
    TIMEOUT = 0x56
    EVENT_KEY = 0x57
    EVENT_DATA = 0x58
    TXN_ISOLATION = 0x59
    AUTH_TYPE = 0x5B
    SPACE_NAME = 0x5E
    INDEX_NAME = 0x5F


class Feature(IntEnum):
    """Protocol features that both sides of a connection announce with ID."""

    STREAMS = 0
    TRANSACTIONS = 1
    ERROR_EXTENSION = 2
    WATCHERS = 3
    PAGINATION = 4
    SPACE_AND_INDEX_NAMES = 5
    WATCH_ONCE = 6
    DML_TUPLE_EXTENSION = 7
    CALL_RET_TUPLE_EXTENSION = 8
    CALL_ARG_TUPLE_EXTENSION = 9
    FETCH_SNAPSHOT_CURSOR = 10
    IS_SYNC = 11
    INSERT_ARROW = 12


PROTOCOL_VERSION: Final = 6
"""The protocol version that ID announces, that of the newest supported feature."""

CHUNK: Final = 0x80
"""The type of a message before the response to a request."""

ERROR_FLAG: Final = 0x8000
"""The bit that turns a response's type into an error's number."""
