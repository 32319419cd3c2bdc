"""The numbered errors of the box and the wording of each.

Clients match errors by number and people search the web by their wording, so both are Tarantool's. The
wording is that of 2.6; errors that 2.6 did not have yet are worded as in the line that introduced them.
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """The number of an error, called ``ER_<NAME>`` in Tarantool; ``box.error.<NAME>`` in its Lua.

    Each member also has a ``template``: a printf-style pattern for the arguments of a ``BoxError``.
    """

    template: str

    def __new__(cls, code: int, template: str = "") -> "ErrorCode":
        """Create a member from its number and its wording."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.template = template
        return member

    UNKNOWN = 0, "Unknown error"
    ILLEGAL_PARAMS = 1, "Illegal parameters, %s"
    MEMORY_ISSUE = 2, "Failed to allocate %d bytes in %s for %s"
    TUPLE_FOUND = 3, "Duplicate key exists in unique index '%s' in space '%s'"
    TUPLE_NOT_FOUND = 4, "Tuple doesn't exist in index '%s' in space '%s'"
    UNSUPPORTED = 5, "%s does not support %s"
    NONMASTER = 6, "Can't modify data on a replication slave. My master is: %s"
    READONLY = 7, "Can't modify data because this instance is in read-only mode."
    INJECTION = 8, "Error injection '%s'"
    CREATE_SPACE = 9, "Failed to create space '%s': %s"
    SPACE_EXISTS = 10, "Space '%s' already exists"
    DROP_SPACE = 11, "Can't drop space '%s': %s"
    ALTER_SPACE = 12, "Can't modify space '%s': %s"
    INDEX_TYPE = 13, "Unsupported index type supplied for index '%s' in space '%s'"
    MODIFY_INDEX = 14, "Can't create or modify index '%s' in space '%s': %s"
    LAST_DROP = 15, "Can't drop the primary key in a system space, space '%s'"
    TUPLE_FORMAT_LIMIT = 16, "Tuple format limit reached: %d"
    DROP_PRIMARY_KEY = 17, "Can't drop primary key in space '%s' while secondary keys exist"
    KEY_PART_TYPE = 18, "Supplied key type of part %d does not match index part type: expected %s"
    EXACT_MATCH = 19, "Invalid key part count in an exact match (expected %d, got %d)"
    INVALID_MSGPACK = 20, "Invalid MsgPack - %s"
    PROC_RET = 21, "msgpack.encode: can not encode Lua type '%s'"
    TUPLE_NOT_ARRAY = 22, "Tuple/Key must be MsgPack array"
    FIELD_TYPE = 23, "Tuple field %s type does not match one required by operation: expected %s"
    INDEX_PART_TYPE_MISMATCH = 24, "Field %s has type '%s' in one index, but type '%s' in another"
    UPDATE_SPLICE = 25, "SPLICE error on field %s: %s"
    UPDATE_ARG_TYPE = 26, "Argument type in operation '%s' on field %s does not match field type: expected %s"
    FORMAT_MISMATCH_INDEX_PART = (
        27,
        "Field %s has type '%s' in space format, but type '%s' in index definition",
    )
    UNKNOWN_UPDATE_OP = 28, "Unknown UPDATE operation #%d: %s"
    UPDATE_FIELD = 29, "Field %s UPDATE error: %s"
    FUNCTION_TX_ACTIVE = 30, "Transaction is active at return from function"
    KEY_PART_COUNT = 31, "Invalid key part count (expected [0..%d], got %d)"
    PROC_LUA = 32, "%s"
    NO_SUCH_PROC = 33, "Procedure '%s' is not defined"
    NO_SUCH_TRIGGER = 34, "Trigger '%s' doesn't exist"
    NO_SUCH_INDEX_ID = 35, "No index #%d is defined in space '%s'"
    NO_SUCH_SPACE = 36, "Space '%s' does not exist"
    NO_SUCH_FIELD_NO = 37, "Field %d was not found in the tuple"
    EXACT_FIELD_COUNT = 38, "Tuple field count %d does not match space field count %d"
    FIELD_MISSING = 39, "Tuple field %s required by space format is missing"
    WAL_IO = 40, "Failed to write to disk"
    MORE_THAN_ONE_TUPLE = 41, "Get() doesn't support partial keys and non-unique indexes"
    ACCESS_DENIED = 42, "%s access to %s '%s' is denied for user '%s'"
    CREATE_USER = 43, "Failed to create user '%s': %s"
    DROP_USER = 44, "Failed to drop user or role '%s': %s"
    NO_SUCH_USER = 45, "User '%s' is not found"
    USER_EXISTS = 46, "User '%s' already exists"
    CREDS_MISMATCH = 47, "User not found or supplied credentials are invalid"
    PASSWORD_MISMATCH = 47, "User not found or supplied credentials are invalid"
    """As 2.6 called it, which had another wording, and number 45 for users that there are not."""
    UNKNOWN_REQUEST_TYPE = 48, "Unknown request type %d"
    UNKNOWN_SCHEMA_OBJECT = 49, "Unknown object type '%s'"
    CREATE_FUNCTION = 50, "Failed to create function '%s': %s"
    NO_SUCH_FUNCTION = 51, "Function '%s' does not exist"
    FUNCTION_EXISTS = 52, "Function '%s' already exists"
    BEFORE_REPLACE_RET = (
        53,
        "Invalid return value of space:before_replace trigger: expected tuple or nil, got %s",
    )
    MULTISTATEMENT_TRANSACTION = 54, "Can not perform %s in a multi-statement transaction"
    TRIGGER_EXISTS = 55, "Trigger '%s' already exists"
    USER_MAX = 56, "A limit on the total number of users has been reached: %d"
    NO_SUCH_ENGINE = 57, "Space engine '%s' does not exist"
    RELOAD_CFG = 58, "Can't set option '%s' dynamically"
    CFG = 59, "Incorrect value for option '%s': %s"
    SAVEPOINT_EMPTY_TX = 60, "Can not set a savepoint in an empty transaction"
    NO_SUCH_SAVEPOINT = 61, "Can not rollback to savepoint: the savepoint does not exist"
    UNKNOWN_REPLICA = 62, "Replica %s is not registered with replica set %s"
    REPLICASET_UUID_MISMATCH = 63, "Replica set UUID mismatch: expected %s, got %s"
    INVALID_UUID = 64, "Invalid UUID: %s"
    REPLICASET_UUID_IS_RO = 65, "Can't reset replica set UUID: it is already assigned"
    INSTANCE_UUID_MISMATCH = 66, "Instance UUID mismatch: expected %s, got %s"
    REPLICA_ID_IS_RESERVED = 67, "Can't initialize replica id with a reserved value %d"
    INVALID_ORDER = 68, "Invalid LSN order for instance %d: previous LSN = %d, new lsn = %d"
    MISSING_REQUEST_FIELD = 69, "Missing mandatory field '%s' in request"
    IDENTIFIER = 70, "Invalid identifier '%s' (expected printable symbols only or it is too long)"
    DROP_FUNCTION = 71, "Can't drop function %d: %s"
    ITERATOR_TYPE = 72, "Unknown iterator type '%s'"
    REPLICA_MAX = 73, "Replica count limit reached: %d"
    INVALID_XLOG = 74, "Failed to read xlog: %d"
    INVALID_XLOG_NAME = 75, "Invalid xlog name: expected %d got %d"
    INVALID_XLOG_ORDER = 76, "Invalid xlog order: %d and %d"
    NO_CONNECTION = 77, "Connection is not established"
    TIMEOUT = 78, "Timeout exceeded"
    ACTIVE_TRANSACTION = 79, "Operation is not permitted when there is an active transaction "
    CURSOR_NO_TRANSACTION = 80, "The transaction the cursor belongs to has ended"
    CROSS_ENGINE_TRANSACTION = 81, "A multi-statement transaction can not use multiple storage engines"
    NO_SUCH_ROLE = 82, "Role '%s' is not found"
    ROLE_EXISTS = 83, "Role '%s' already exists"
    CREATE_ROLE = 84, "Failed to create role '%s': %s"
    INDEX_EXISTS = 85, "Index '%s' already exists"
    SESSION_CLOSED = 86, "Session is closed"
    ROLE_LOOP = 87, "Granting role '%s' to role '%s' would create a loop"
    GRANT = 88, "Incorrect grant arguments: %s"
    PRIV_GRANTED = 89, "User '%s' already has %s access on %s%s"
    ROLE_GRANTED = 90, "User '%s' already has role '%s'"
    PRIV_NOT_GRANTED = 91, "User '%s' does not have %s access on %s '%s'"
    ROLE_NOT_GRANTED = 92, "User '%s' does not have role '%s'"
    MISSING_SNAPSHOT = 93, "Can't find snapshot"
    CANT_UPDATE_PRIMARY_KEY = 94, "Attempt to modify a tuple field which is part of index '%s' in space '%s'"
    UPDATE_INTEGER_OVERFLOW = 95, "Integer overflow when performing '%s' operation on field %s"
    GUEST_USER_PASSWORD = 96, "Setting password for guest user has no effect"
    TRANSACTION_CONFLICT = 97, "Transaction has been aborted by conflict"
    UNSUPPORTED_PRIV = 98, "Unsupported %s privilege '%s'"
    LOAD_FUNCTION = 99, "Failed to dynamically load function '%s': %s"
    FUNCTION_LANGUAGE = 100, "Unsupported language '%s' specified for function '%s'"
    RTREE_RECT = 101, "RTree: %s must be an array with %d (point) or %d (rectangle/box) numeric coordinates"
    PROC_C = 102, "%s"
    UNKNOWN_RTREE_INDEX_DISTANCE_TYPE = 103, "Unknown RTREE index distance type %s"
    PROTOCOL = 104, "%s"
    UPSERT_UNIQUE_SECONDARY_KEY = 105, "Space %s has a unique secondary index and does not support UPSERT"
    WRONG_INDEX_RECORD = 106, "Wrong record in _index space: got {%s}, expected {%s}"
    WRONG_INDEX_PARTS = 107, "Wrong index parts: %s; expected field1 id (number), field1 type (string), ..."
    WRONG_INDEX_OPTIONS = 108, "Wrong index options (field %d): %s"
    WRONG_SCHEMA_VERSION = 109, "Wrong schema version, current: %d, in request: %d"
    MEMTX_MAX_TUPLE_SIZE = (
        110,
        "Failed to allocate %d bytes for tuple: tuple is too large. Check 'memtx_max_tuple_size' "
        "configuration option.",
    )
    WRONG_SPACE_OPTIONS = 111, "Wrong space options (field %d): %s"
    UNSUPPORTED_INDEX_FEATURE = 112, "Index '%s' (%s) of space '%s' (%s) does not support %s"
    VIEW_IS_RO = 113, "View '%s' is read-only"
    NO_TRANSACTION = 114, "No active transaction"
    SYSTEM = 115, "%s"
    LOADING = 116, "Instance bootstrap hasn't finished yet"
    CONNECTION_TO_SELF = 117, "Connection to self"
    KEY_PART_IS_TOO_LONG = 118, "Key part is too long: %d of %d bytes"
    COMPRESSION = 119, "Compression error: %s"
    CHECKPOINT_IN_PROGRESS = 120, "Snapshot is already in progress"
    SUB_STMT_MAX = 121, "Can not execute a nested statement: nesting limit reached"
    COMMIT_IN_SUB_STMT = 122, "Can not commit transaction in a nested statement"
    ROLLBACK_IN_SUB_STMT = 123, "Rollback called in a nested statement"
    DECOMPRESSION = 124, "Decompression error: %s"
    INVALID_XLOG_TYPE = 125, "Invalid xlog type: expected %s, got %s"
    ALREADY_RUNNING = 126, "Failed to lock WAL directory %s and hot_standby mode is off"
    INDEX_FIELD_COUNT_LIMIT = 127, "Indexed field count limit reached: %d indexed fields"
    LOCAL_INSTANCE_ID_IS_READ_ONLY = 128, "The local instance id %d is read-only"
    BACKUP_IN_PROGRESS = 129, "Backup is already in progress"
    READ_VIEW_ABORTED = 130, "The read view is aborted"
    INVALID_INDEX_FILE = 131, "Invalid INDEX file %s: %s"
    INVALID_RUN_FILE = 132, "Invalid RUN file: %s"
    INVALID_VYLOG_FILE = 133, "Invalid VYLOG file: %s"
    CHECKPOINT_ROLLBACK = 134, "Can't start a checkpoint while in cascading rollback"
    VY_QUOTA_TIMEOUT = 135, "Timed out waiting for Vinyl memory quota"
    PARTIAL_KEY = (
        136,
        "%s index  does not support selects via a partial key (expected %d parts, got %d). Please Consider "
        "changing index type to TREE.",
    )
    TRUNCATE_SYSTEM_SPACE = 137, "Can't truncate a system space, space '%s'"
    LOAD_MODULE = 138, "Failed to dynamically load module '%s': %s"
    VINYL_MAX_TUPLE_SIZE = (
        139,
        "Failed to allocate %d bytes for tuple: tuple is too large. Check 'vinyl_max_tuple_size' "
        "configuration option.",
    )
    WRONG_DD_VERSION = 140, "Wrong _schema version: expected 'major.minor[.patch]'"
    WRONG_SPACE_FORMAT = 141, "Wrong space format (field %d): %s"
    CREATE_SEQUENCE = 142, "Failed to create sequence '%s': %s"
    ALTER_SEQUENCE = 143, "Can't modify sequence '%s': %s"
    DROP_SEQUENCE = 144, "Can't drop sequence '%s': %s"
    NO_SUCH_SEQUENCE = 145, "Sequence '%s' does not exist"
    SEQUENCE_EXISTS = 146, "Sequence '%s' already exists"
    SEQUENCE_OVERFLOW = 147, "Sequence '%s' has overflowed"
    NO_SUCH_INDEX_NAME = 148, "No index '%s' is defined in space '%s'"
    SPACE_FIELD_IS_DUPLICATE = 149, "Space field '%s' is duplicate"
    CANT_CREATE_COLLATION = 150, "Failed to initialize collation: %s."
    WRONG_COLLATION_OPTIONS = 151, "Wrong collation options (field %d): %s"
    NULLABLE_PRIMARY = 152, "Primary index of space '%s' can not contain nullable parts"
    NO_SUCH_FIELD_NAME_IN_SPACE = 153, "Field '%s' was not found in space '%s' format"
    TRANSACTION_YIELD = 154, "Transaction has been aborted by a fiber yield"
    NO_SUCH_GROUP = 155, "Replication group '%s' does not exist"
    SQL_BIND_VALUE = 156, "Bind value for parameter %s is out of range for type %s"
    SQL_BIND_TYPE = 157, "Bind value type %s for parameter %s is not supported"
    SQL_BIND_PARAMETER_MAX = 158, "SQL bind parameter limit reached: %d"
    SQL_EXECUTE = 159, "Failed to execute SQL statement: %s"
    UPDATE_DECIMAL_OVERFLOW = 160, "Decimal overflow when performing operation '%s' on field %s"
    SQL_BIND_NOT_FOUND = 161, "Parameter %s was not found in the statement"
    ACTION_MISMATCH = 162, "Field %s contains %s on conflict action, but %s in index parts"
    VIEW_MISSING_SQL = 163, "Space declared as a view must have SQL statement"
    FOREIGN_KEY_CONSTRAINT = (
        164,
        "Can not commit transaction: deferred foreign keys violations are not resolved",
    )
    NO_SUCH_MODULE = 165, "Module '%s' does not exist"
    NO_SUCH_COLLATION = 166, "Collation '%s' does not exist"
    CREATE_FK_CONSTRAINT = 167, "Failed to create foreign key constraint '%s': %s"
    DROP_FK_CONSTRAINT = 168, "Failed to drop foreign key constraint '%s': %s"
    NO_SUCH_CONSTRAINT = 169, "Constraint '%s' does not exist in space '%s'"
    CONSTRAINT_EXISTS = 170, "%s constraint '%s' already exists in space '%s'"
    SQL_TYPE_MISMATCH = 171, "Type mismatch: can not convert %s to %s"
    ROWID_OVERFLOW = 172, "Rowid is overflowed: too many entries in ephemeral space"
    DROP_COLLATION = 173, "Can't drop collation %s : %s"
    ILLEGAL_COLLATION_MIX = 174, "Illegal mix of collations"
    SQL_NO_SUCH_PRAGMA = 175, "Pragma '%s' does not exist"
    SQL_CANT_RESOLVE_FIELD = 176, "Can’t resolve field '%s'"
    INDEX_EXISTS_IN_SPACE = 177, "Index '%s' already exists in space '%s'"
    INCONSISTENT_TYPES = 178, "Inconsistent types: expected %s got %s"
    SQL_SYNTAX_WITH_POS = 179, "Syntax error at line %d at or near position %d: %s"
    SQL_STACK_OVERFLOW = 180, "Failed to parse SQL statement: parser stack limit reached"
    SQL_SELECT_WILDCARD = 181, "Failed to expand '*' in SELECT statement without FROM clause"
    SQL_STATEMENT_EMPTY = 182, "Failed to execute an empty SQL statement"
    SQL_KEYWORD_IS_RESERVED = (
        183,
        "At line %d at or near position %d: keyword '%s' is reserved. Please use double quotes if '%s' "
        "is an identifier.",
    )
    SQL_SYNTAX_NEAR_TOKEN = 184, "Syntax error at line %d near '%s'"
    SQL_UNKNOWN_TOKEN = 185, "At line %d at or near position %d: unrecognized token '%s'"
    SQL_PARSER_GENERIC = 186, "%s"
    SQL_ANALYZE_ARGUMENT = 187, "ANALYZE statement argument %s is not a base table"
    SQL_COLUMN_COUNT_MAX = 188, "Failed to create space '%s': space column count %d exceeds the limit (%d)"
    HEX_LITERAL_MAX = 189, "Hex literal %s%s length %d exceeds the supported limit (%d)"
    INT_LITERAL_MAX = (
        190,
        "Integer literal %s%s exceeds the supported range [-9223372036854775808, 18446744073709551615]",
    )
    SQL_PARSER_LIMIT = 191, "%s %d exceeds the limit (%d)"
    INDEX_DEF_UNSUPPORTED = 192, "%s are prohibited in an index definition"
    CK_DEF_UNSUPPORTED = 193, "%s are prohibited in a ck constraint definition"
    MULTIKEY_INDEX_MISMATCH = 194, "Field %s is used as multikey in one index and as single key in another"
    CREATE_CK_CONSTRAINT = 195, "Failed to create check constraint '%s': %s"
    CK_CONSTRAINT_FAILED = 196, "Check constraint failed '%s': %s"
    SQL_COLUMN_COUNT = (
        197,
        "Unequal number of entries in row expression: left side has %d, but right side - %d",
    )
    FUNC_INDEX_FUNC = 198, "Failed to build a key for functional index '%s' of space '%s': %s"
    FUNC_INDEX_FORMAT = 199, "Key format doesn't match one defined in functional index '%s' of space '%s': %s"
    FUNC_INDEX_PARTS = 200, "Wrong functional index definition: %s"
    NO_SUCH_FIELD_NAME = 201, "Field '%s' was not found in the tuple"
    FUNC_WRONG_ARG_COUNT = 202, "Wrong number of arguments is passed to %s(): expected %s, got %d"
    BOOTSTRAP_READONLY = 203, "Trying to bootstrap a local read-only instance as master"
    SQL_FUNC_WRONG_RET_COUNT = 204, "SQL expects exactly one argument returned from %s, got %d"
    FUNC_INVALID_RETURN_TYPE = 205, "Function '%s' returned value of invalid type: expected %s got %s"
    SQL_PARSER_GENERIC_WITH_POS = 206, "At line %d at or near position %d: %s"
    REPLICA_NOT_ANON = 207, "Replica '%s' is not anonymous and cannot register."
    CANNOT_REGISTER = 208, "Couldn't find an instance to register this replica on."
    SESSION_SETTING_INVALID_VALUE = 209, "Session setting %s expected a value of type %s"
    SQL_PREPARE = 210, "Failed to prepare SQL statement: %s"
    WRONG_QUERY_ID = 211, "Prepared statement with id %d does not exist"
    SEQUENCE_NOT_STARTED = 212, "Sequence '%s' is not started"
    NO_SUCH_SESSION_SETTING = 213, "Session setting %s doesn't exist"
    UNCOMMITTED_FOREIGN_SYNC_TXNS = 214, "Found uncommitted sync transactions from other instance with id %d"
    SYNC_MASTER_MISMATCH = 215, "CONFIRM message arrived for an unknown master id %d, expected %d"
    SYNC_QUORUM_TIMEOUT = 216, "Quorum collection for a synchronous transaction is timed out"
    SYNC_ROLLBACK = 217, "A rollback for a synchronous transaction is received"
    TUPLE_METADATA_IS_TOO_BIG = 218, "Can't create tuple: metadata size %d is too big"
    XLOG_GAP = 219, "%s"
    TOO_EARLY_SUBSCRIBE = 220, "Can't subscribe non-anonymous replica %s until join is done"
    SQL_CANT_ADD_AUTOINC = (
        221,
        "Can't add AUTOINCREMENT: space %s can't feature more than one AUTOINCREMENT field",
    )
    QUORUM_WAIT = 222, "Couldn't wait for quorum %d: %s"
    INTERFERING_PROMOTE = 223, "Instance with replica id %d was promoted first"
    ELECTION_DISABLED = 224, "Elections were turned off"
    TXN_ROLLBACK = 225, "Transaction was rolled back"
    NOT_LEADER = 226, "The instance is not a leader. New leader is %d"
    SYNC_QUEUE_UNCLAIMED = 227, "The synchronous transaction queue doesn't belong to any instance"
    SYNC_QUEUE_FOREIGN = 228, "The synchronous transaction queue belongs to other instance with id %d"
    UNABLE_TO_PROCESS_IN_STREAM = 229, "Unable to process %s request in stream"
    UNABLE_TO_PROCESS_OUT_OF_STREAM = 230, "Unable to process %s request out of stream"
    TRANSACTION_TIMEOUT = 231, "Transaction has been aborted by timeout"
    ACTIVE_TIMER = 232, "Operation is not permitted if timer is already running"
    TUPLE_FIELD_COUNT_LIMIT = 233, "Tuple field count limit reached: see box.schema.FIELD_MAX"
    CREATE_CONSTRAINT = 234, "Failed to create constraint '%s' in space '%s': %s"
    FIELD_CONSTRAINT_FAILED = 235, "Check constraint '%s' failed for field '%s'"
    TUPLE_CONSTRAINT_FAILED = 236, "Check constraint '%s' failed for a tuple"
    CREATE_FOREIGN_KEY = 237, "Failed to create foreign key '%s' in space '%s': %s"
    FOREIGN_KEY_INTEGRITY = 238, "Foreign key '%s' integrity check failed: %s"
    FIELD_FOREIGN_KEY_FAILED = 239, "Foreign key constraint '%s' failed for field '%s': %s"
    COMPLEX_FOREIGN_KEY_FAILED = 240, "Foreign key constraint '%s' failed: %s"
    WRONG_SPACE_UPGRADE_OPTIONS = 241, "Wrong space upgrade options: %s"
    NO_ELECTION_QUORUM = 242, "Not enough peers connected to start elections: %d out of minimal required %d"
    SSL = 243, "%s"
    SPLIT_BRAIN = 244, "Split-Brain discovered: %s"
    OLD_TERM = 245, "The term is outdated: old - %d, new - %d"
    INTERFERING_ELECTIONS = 246, "Interfering elections started"
    ITERATOR_POSITION = 247, "Iterator position is invalid"
    DEFAULT_VALUE_TYPE = (
        248,
        "Type of the default value does not match tuple field %s type: expected %s, got %s",
    )
    UNKNOWN_AUTH_METHOD = 249, "Unknown authentication method '%s'"
    INVALID_AUTH_DATA = 250, "Invalid '%s' data: %s"
    INVALID_AUTH_REQUEST = 251, "Invalid '%s' request: %s"
    WEAK_PASSWORD = 252, "Password doesn't meet security requirements: %s"
    OLD_PASSWORD = 253, "Password must differ from last %d passwords"
    NO_SUCH_SESSION = 254, "Session %d does not exist"
    WRONG_SESSION_TYPE = 255, "Session '%s' is not supported"
    PASSWORD_EXPIRED = 256, "Password expired"
    AUTH_DELAY = 257, "Too many authentication attempts"
    AUTH_REQUIRED = 258, "Authentication required"
    SQL_SEQ_SCAN = 259, "Scanning is not allowed for %s"
    NO_SUCH_EVENT = 260, "Unknown event %s"
    BOOTSTRAP_NOT_UNANIMOUS = 261, "Replica %s chose a different bootstrap leader %s"
    CANT_CHECK_BOOTSTRAP_LEADER = 262, "Can't check who replica %s chose its bootstrap leader"
    BOOTSTRAP_CONNECTION_NOT_TO_ALL = (
        263,
        "Some replica set members were not specified in box.cfg.replication",
    )
    NIL_UUID = 264, "Nil UUID is reserved and can't be used in replication"
    WRONG_FUNCTION_OPTIONS = 265, "Wrong function options: %s"
    MISSING_SYSTEM_SPACES = 266, "Snapshot has no system spaces"
    CLUSTER_NAME_MISMATCH = (
        267,
        "Cluster name mismatch: name '%s' provided in config confilcts with the instance one '%s'",
    )
    REPLICASET_NAME_MISMATCH = (
        268,
        "Replicaset name mismatch: name '%s' provided in config confilcts with the instance one '%s'",
    )
    INSTANCE_NAME_DUPLICATE = 269, "Duplicate replica name %s, already occupied by %s"
    INSTANCE_NAME_MISMATCH = (
        270,
        "Instance name mismatch: name '%s' provided in config confilcts with the instance one '%s'",
    )
    SCHEMA_NEEDS_UPGRADE = (
        271,
        "Your schema version is %s while Tarantool feature %s requires schema version %s or higher. "
        "Please, consider using box.schema.upgrade().",
    )
    SCHEMA_UPGRADE_IN_PROGRESS = 272, "Schema upgrade is already in progress"
    DEPRECATED = 273, "%s is deprecated"
    UNCONFIGURED = 274, "Please call box.cfg{} first"
    CREATE_DEFAULT_FUNC = 275, "Failed to create field default function '%s': %s"
    DEFAULT_FUNC_FAILED = 276, "Error calling field default function '%s': %s"
    INVALID_DEC = 277, "Invalid decimal: '%s'"
    IN_ANOTHER_PROMOTE = 278, "box.ctl.promote() is already running"
    SHUTDOWN = 279, "Server is shutting down"
    FIELD_VALUE_OUT_OF_RANGE = 280, "The value of field %s exceeds the supported range for type '%s': %s"
    REPLICASET_NOT_FOUND = 281, "The replicaset was not found by its name"
    REPLICASET_NO_WRITABLE = 282, "Writable instance was not found in replicaset"
    REPLICASET_MORE_THAN_ONE_WRITABLE = 283, "More than one writable was found in replicaset"
    TXN_COMMIT = 284, "Transaction was committed"
    READ_VIEW_BUSY = 285, "The read view is busy"
    READ_VIEW_CLOSED = 286, "The read view is closed"
    WAL_QUEUE_FULL = 287, "The WAL queue is full"
    INVALID_VCLOCK = 288, "Invalid vclock"
    SYNC_QUEUE_FULL = 289, "The synchronous transaction queue is full"
    KEY_PART_VALUE_OUT_OF_RANGE = 290, "The value of key part exceeds the supported range for type"
    REPLICA_GC = 291, "Cannot clean up replica's resources"
    ALIEN_ENGINE = 292, "Snapshot contains alien space engine row"
    MVCC_UNAVAILABLE = (
        293,
        "MVCC is unavailable for storage engine '%s' so it cannot be used in the same transaction with "
        "'%s', which supports MVCC",
    )
    CANT_UPGRADE_INDEXED_FIELD = 294, "Space upgrade doesn't support changing indexed fields"
    SYNC_TIMEOUT = (
        295,
        "Quorum collection for a synchronous transaction is timed out. The transaction is detached from "
        "this fiber and continues waiting for quorum",
    )
    FIELD_IRREPRESENTABLE_VALUE = 296, "The value does not fit in field type"
    KEY_PART_IRREPRESENTABLE_VALUE = 297, "The value of key part does not fit in type"
    INVALID_SORTDATA_FILE = 298, "Invalid MemTX sort data file"
    NO_SUCH_THREAD = 299, "Thread does not exist"
    UNABLE_TO_PROCESS_IN_THREAD = 300, "Unable to process request in thread"
    DICT_OVERFLOW = 301, "Dictionary has no space - too many unique values are used"
    NO_SUCH_THREAD_GROUP = 302, "Thread group does not exist"
    XLOG_NOT_FOUND = 303, "xlog file not found"
    RECOVERY_POINT_TXN_LAST_ROW = 304, "Last row of recovery point transaction should not be local"
    NO_SUCH_READ_VIEW = 305, "Read view was not found by id"
