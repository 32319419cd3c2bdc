/* How changes become rows of the log.
 *
 * A row is a map, its head, and mostly another one, its body:
 *
 *     {TYPE, REPLICA_ID, GROUP_ID, LSN, TIMESTAMP, TSN, FLAGS}   {SPACE_ID, TUPLE or KEY}
 *
 * Zeros are left out of the head, and so are TSN and FLAGS of a row that is a transaction by itself. TSN is stored as its
 * distance from the LSN.
 */
#include "../native.h"

/* The greatest sizes of a row's head, and of all that comes before its tuple or key. */
enum { ROW_HEAD_MAX = 1 + 6 * (1 + UNSIGNED_SIZE_MAX) + 10, ROW_LEAD_MAX = ROW_HEAD_MAX + 3 + UNSIGNED_SIZE_MAX };

enum { GROUP_LOCAL = 1 };

typedef struct {
    uint64_t type, replica_id, group_id, lsn, tsn, flags;
    double timestamp;
} RowHead;

static uint8_t *put_pair(uint8_t *at, uint8_t key, uint64_t value)
{
    *at = key;
    return put_unsigned(at + 1, value);
}

static uint8_t *put_timestamp(uint8_t *at, double timestamp)
{
    uint64_t bits;
    memcpy(&bits, &timestamp, sizeof bits);
    at[0] = ROW_TIMESTAMP;
    at[1] = 0xcb;
    put_big_endian(at + 2, bits, 8);
    return at + 10;
}

static uint8_t *put_row_head(uint8_t *at, const RowHead *head)
{
    uint8_t *first = at;
    uint64_t flags = head->flags & ~(uint64_t)ROW_COMMIT;
    int pairs = 1;
    at = put_pair(at + 1, ROW_TYPE, head->type);
    if (head->replica_id && ++pairs)
        at = put_pair(at, ROW_MEMBER, head->replica_id);
    if (head->group_id && ++pairs)
        at = put_pair(at, ROW_GROUP_ID, head->group_id);
    if (head->lsn && ++pairs)
        at = put_pair(at, ROW_LSN, head->lsn);
    if (head->timestamp != 0 && ++pairs)
        at = put_timestamp(at, head->timestamp);
    if (head->tsn != head->lsn || !(head->flags & ROW_COMMIT)) {
        at = put_pair(at, ROW_TSN, head->lsn - head->tsn);
        flags = head->flags;
        pairs++;
    }
    if (flags && ++pairs)
        at = put_pair(at, ROW_FLAGS, flags);
    *first = (uint8_t)(0x80 + pairs);
    return at;
}

static uint8_t *put_body_lead(uint8_t *at, uint64_t type, uint64_t space_id)
{
    *at = 0x82;
    at = put_pair(at + 1, ROW_SPACE_ID, space_id);
    *at = type == BLOCK_DELETE ? ROW_KEY : ROW_TUPLE;
    return at + 1;
}

/* -- transactions -- */

size_t transaction_size_max(const LogChange *changes, Py_ssize_t count)
{
    size_t size = (size_t)count * ROW_LEAD_MAX;
    for (Py_ssize_t place = 0; place < count; place++)
        size += changes[place].size;
    return size;
}

/* The transaction's id (TSN): the LSN of its first row that is replicated, or else of its first row. */
static uint64_t transaction_id(const RowNumbers *numbers, const LogChange *changes, Py_ssize_t count)
{
    for (Py_ssize_t place = 0; place < count; place++)
        if (!changes[place].is_local)
            return numbers->lsn + 1;
    return numbers->local_lsn + 1;
}

uint8_t *put_transaction(uint8_t *at, RowNumbers *numbers, const LogChange *changes, Py_ssize_t count)
{
    RowHead head = {.timestamp = numbers->timestamp, .tsn = transaction_id(numbers, changes, count)};
    for (const LogChange *change = changes; change < changes + count; change++) {
        head.type = change->type;
        head.replica_id = change->is_local ? 0 : numbers->replica_id;
        head.group_id = change->is_local ? GROUP_LOCAL : 0;
        head.lsn = change->is_local ? ++numbers->local_lsn : ++numbers->lsn;
        head.flags = change + 1 == changes + count ? ROW_COMMIT : 0;
        at = put_row_head(at, &head);
        if (change->space_id != NO_SPACE)
            at = put_body_lead(at, change->type, change->space_id);
        if (change->size)
            memcpy(at, change->data, change->size);
        at += change->size;
    }
    return at;
}

/* encode_row_head(type, replica_id, group_id, lsn, timestamp, tsn, flags) */
FUNCTION(native_encode_row_head)
{
    enum { ARGUMENTS = 7, TIMESTAMP = 4, TSN = 5 };
    uint64_t numbers[ARGUMENTS] = {0};
    if (count != ARGUMENTS)
        return PyErr_Format(PyExc_TypeError, "encode_row_head() takes seven arguments, not %zd", count);
    for (int place = 0; place < ARGUMENTS; place++)
        if (place == TSN) /* rows of another member may be below it */
            numbers[place] = PyLong_AsUnsignedLongLongMask(args[place]);
        else if (place != TIMESTAMP)
            numbers[place] = PyLong_AsUnsignedLongLong(args[place]);
    double timestamp = PyFloat_AsDouble(args[TIMESTAMP]);
    if (PyErr_Occurred())
        return NULL;
    RowHead head = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[TSN], numbers[6], timestamp};
    uint8_t row[ROW_HEAD_MAX];
    return PyBytes_FromStringAndSize((const char *)row, put_row_head(row, &head) - row);
}
