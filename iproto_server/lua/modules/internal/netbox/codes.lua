-- Numbers of the protocol IPROTO.
--
-- Source: Tarantool reference, "Tarantool's binary protocol".
return {
    -- keys
    REQUEST_TYPE = 0x00, SYNC = 0x01, SCHEMA_VERSION = 0x05,
    SPACE_ID = 0x10, INDEX_ID = 0x11, LIMIT = 0x12, OFFSET = 0x13, ITERATOR = 0x14, INDEX_BASE = 0x15,
    KEY = 0x20, TUPLE = 0x21, FUNCTION_NAME = 0x22, USER_NAME = 0x23, EXPR = 0x27, OPS = 0x28, OPTIONS = 0x2b,
    DATA = 0x30, ERROR_24 = 0x31, METADATA = 0x32, BIND_METADATA = 0x33, BIND_COUNT = 0x34,
    SQL_TEXT = 0x40, SQL_BIND = 0x41, SQL_INFO = 0x42, STMT_ID = 0x43, ERROR = 0x52,
    -- requests
    SELECT = 1, INSERT = 2, REPLACE = 3, UPDATE = 4, DELETE = 5, CALL_16 = 6, AUTH = 7, EVAL = 8, UPSERT = 9,
    CALL = 10, EXECUTE = 11, PREPARE = 13, PING = 64,
    -- responses
    PUSH = 0x80, ERROR_FLAG = 0x8000,
    -- SQL_INFO
    ROW_COUNT = 0, AUTOINCREMENT_IDS = 1,
    -- spaces of the schema
    VCOLLATION = 277, VSPACE = 281, VINDEX = 289,
    -- iterators
    EQ = 0, ALL = 2, LE = 4, GE = 5,
    LIMIT_MAX = 0xFFFFFFFF,
}
