/* The rows of the log that have yet to be written, in one piece: the twin of LogRows (storage/log_rows.py). */
#include "../native.h"

enum { BLOCK_SIZE = 128 * 1024, BLOCK_HEAD_SIZE = 19 }; /* as in storage/xlog/block.py */

typedef struct {
    PyObject_HEAD
    Buffer buffer;
    Py_ssize_t *ends, count, room; /* of the blocks that are full */
    unsigned long long replica_id, lsn;
    double timestamp;
    int is_closed;
} LogRowsObject;

static LogRowsObject *as_rows(PyObject *object)
{
    return (LogRowsObject *)object;
}

static PyObject *new_rows(PyTypeObject *type, unsigned long long replica_id, unsigned long long lsn)
{
    LogRowsObject *self = (LogRowsObject *)type->tp_alloc(type, 0);
    if (self) {
        buffer_init(&self->buffer);
        self->replica_id = replica_id;
        self->lsn = lsn;
    }
    return (PyObject *)self;
}

static int read_unsigned_long(PyObject *number, unsigned long long *value)
{
    *value = PyLong_AsUnsignedLongLong(number);
    return PyErr_Occurred() ? -1 : 0;
}

/* LogRows(replica_id, lsn) */
static PyObject *rows_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    unsigned long long replica_id, lsn;
    if (PyTuple_GET_SIZE(args) != 2 || (keywords && PyDict_GET_SIZE(keywords)))
        return PyErr_Format(PyExc_TypeError, "LogRows() takes a member's id and an LSN");
    if (read_unsigned_long(PyTuple_GET_ITEM(args, 0), &replica_id) < 0
        || read_unsigned_long(PyTuple_GET_ITEM(args, 1), &lsn) < 0)
        return NULL;
    return new_rows(type, replica_id, lsn);
}

static void rows_dealloc(PyObject *object)
{
    buffer_free(&as_rows(object)->buffer);
    PyMem_Free(as_rows(object)->ends);
    Py_TYPE(object)->tp_free(object);
}

/* -- transactions: they come to be behind the others, then they are there; the last one may be taken back -- */

static int is_open(LogRowsObject *self)
{
    if (self->is_closed)
        PyErr_SetString(PyExc_RuntimeError, "the rows are being written");
    return !self->is_closed;
}

static int grow_ends(LogRowsObject *self)
{
    Py_ssize_t room = 2 * self->room + 4;
    Py_ssize_t *ends = PyMem_Resize(self->ends, Py_ssize_t, (size_t)room);
    if (!ends) {
        PyErr_NoMemory();
        return -1;
    }
    self->ends = ends;
    self->room = room;
    return 0;
}

/* Room for a transaction of so many bytes, of which it need not take all; NULL with an exception. */
static uint8_t *begin_transaction(LogRowsObject *self, Py_ssize_t size)
{
    if (!is_open(self) || (self->count == self->room && grow_ends(self) < 0))
        return NULL;
    uint8_t *at = buffer_grow(&self->buffer, size);
    if (at)
        self->buffer.size -= size;
    return at;
}

static void end_transaction(LogRowsObject *self, Py_ssize_t end)
{
    Py_ssize_t begin = self->count ? self->ends[self->count - 1] : 0;
    self->buffer.size = end;
    if (BLOCK_HEAD_SIZE + end - begin >= BLOCK_SIZE)
        self->ends[self->count++] = end;
}

static void take_back(LogRowsObject *self, Py_ssize_t start)
{
    if (self->count && self->ends[self->count - 1] > start)
        self->count--;
    self->buffer.size = start;
}

/* -- a transaction of one change -- */

int log_rows_open(LogRow *row, PyObject *rows, uint64_t type, uint64_t space_id, Py_ssize_t size)
{
    LogRowsObject *self = as_rows(rows);
    uint8_t *at = begin_transaction(self, CHANGE_HEAD_MAX + size);
    if (!at)
        return -1;
    row->rows = Py_NewRef(rows);
    row->start = self->buffer.size;
    row->data = put_change_head(at, type, self->replica_id, self->lsn + 1, self->timestamp, space_id);
    row->place = row->data - self->buffer.data;
    row->end = row->place + size;
    return 0;
}

int log_rows_append(const LogRow *row)
{
    LogRowsObject *self = as_rows(row->rows);
    if (!is_open(self))
        return -1;
    if (self->buffer.size != row->start) {
        PyErr_SetString(PyExc_RuntimeError, "another transaction was committed meanwhile");
        return -1;
    }
    end_transaction(self, row->end);
    self->lsn++;
    return 0;
}

void log_rows_take_back(const LogRow *row)
{
    take_back(as_rows(row->rows), row->start);
    as_rows(row->rows)->lsn--;
}

void log_row_close(LogRow *row)
{
    Py_CLEAR(row->rows);
}

PyObject *log_rows_part(PyObject *rows, Py_ssize_t start, Py_ssize_t size)
{
    return PyBytes_FromStringAndSize((const char *)as_rows(rows)->buffer.data + start, size);
}

int log_rows_are_empty(PyObject *rows)
{
    return !as_rows(rows)->buffer.size;
}

void log_rows_begin(PyObject *rows, double timestamp)
{
    as_rows(rows)->timestamp = timestamp;
}

/* -- methods -- */

static int append(LogRowsObject *self, PyObject *transaction)
{
    uint8_t *at = begin_transaction(self, PyBytes_GET_SIZE(transaction));
    if (!at)
        return -1;
    memcpy(at, PyBytes_AS_STRING(transaction), (size_t)PyBytes_GET_SIZE(transaction));
    end_transaction(self, self->buffer.size + PyBytes_GET_SIZE(transaction));
    return 0;
}

static int are_bytes(PyObject *object)
{
    if (PyBytes_Check(object))
        return 1;
    PyErr_SetString(PyExc_TypeError, "rows are bytes");
    return 0;
}

/* append(transaction, count) */
static PyObject *rows_append(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    unsigned long long number;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "append() takes rows, and how many have LSNs");
    if (!are_bytes(args[0]) || read_unsigned_long(args[1], &number) < 0 || append(as_rows(self), args[0]) < 0)
        return NULL;
    as_rows(self)->lsn += number;
    Py_RETURN_NONE;
}

/* append_change(request_type, space_id, raw) */
static PyObject *rows_append_change(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    unsigned long long type, space_id;
    LogRow row;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "append_change() takes a type, a space and a tuple or key");
    if (read_unsigned_long(args[0], &type) < 0 || read_unsigned_long(args[1], &space_id) < 0 || !are_bytes(args[2])
        || log_rows_open(&row, self, type, space_id, PyBytes_GET_SIZE(args[2])) < 0)
        return NULL;
    memcpy(row.data, PyBytes_AS_STRING(args[2]), (size_t)PyBytes_GET_SIZE(args[2]));
    int failed = log_rows_append(&row) < 0;
    log_row_close(&row);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* Put all rows into a bytes object, which is all that is read from now on. */
static int close_rows(LogRowsObject *self)
{
    if (self->is_closed)
        return 0;
    PyObject *all = buffer_take(&self->buffer);
    if (!all)
        return -1;
    buffer_hold(&self->buffer, all);
    Py_DECREF(all);
    self->is_closed = 1;
    return 0;
}

static int append_part(PyObject *list, LogRowsObject *self, Py_ssize_t begin, Py_ssize_t end)
{
    PyObject *part = begin || end < self->buffer.size ? log_rows_part((PyObject *)self, begin, end - begin)
                                                      : Py_NewRef(self->buffer.bytes);
    int failed = !part || PyList_Append(list, part) < 0;
    Py_XDECREF(part);
    return failed ? -1 : 0;
}

static PyObject *rows_blocks(PyObject *object, PyObject *ignored)
{
    LogRowsObject *self = as_rows(object);
    PyObject *blocks = close_rows(self) < 0 ? NULL : PyList_New(0);
    Py_ssize_t begin = 0;
    for (Py_ssize_t place = 0; blocks && place < self->count; begin = self->ends[place++])
        if (append_part(blocks, self, begin, self->ends[place]) < 0)
            Py_CLEAR(blocks);
    if (blocks && begin < self->buffer.size && append_part(blocks, self, begin, self->buffer.size) < 0)
        Py_CLEAR(blocks);
    return blocks;
}

static PyObject *rows_following(PyObject *self, PyObject *ignored)
{
    return new_rows(Py_TYPE(self), as_rows(self)->replica_id, as_rows(self)->lsn);
}

static Py_ssize_t rows_length(PyObject *self)
{
    return as_rows(self)->buffer.size;
}

static PyMethodDef rows_methods[] = {
    {"append", (PyCFunction)(void (*)(void))rows_append, METH_FASTCALL, "Append a transaction."},
    {"append_change", (PyCFunction)(void (*)(void))rows_append_change, METH_FASTCALL, "Append one of one change."},
    {"blocks", rows_blocks, METH_NOARGS, "The rows of each block; no more may be appended."},
    {"following", rows_following, METH_NOARGS, "No rows, whose numbers follow on these."},
    {NULL},
};

static PyMemberDef rows_members[] = {
    {"lsn", T_ULONGLONG, offsetof(LogRowsObject, lsn), 0, "the LSN of the last row"},
    {"timestamp", T_DOUBLE, offsetof(LogRowsObject, timestamp), 0, "when the rows were committed"},
    {NULL},
};

static PySequenceMethods rows_sequence = {.sq_length = rows_length};

PyTypeObject LogRows_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.storage.log_rows.LogRows",
    .tp_doc = "Rows of committed transactions, to be written together.",
    .tp_basicsize = sizeof(LogRowsObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = rows_new,
    .tp_dealloc = rows_dealloc,
    .tp_as_sequence = &rows_sequence,
    .tp_methods = rows_methods,
    .tp_members = rows_members,
};
