/* LogRows: the rows of committed transactions that wait to be written, in one piece. */
#include "../native.h"

typedef struct {
    PyObject_HEAD
    Buffer buffer;
    Py_ssize_t *ends, count, room; /* of the blocks that are full */
    RowNumbers numbers;
    int is_closed;
} LogRowsObject;

static LogRowsObject *as_rows(PyObject *object)
{
    return (LogRowsObject *)object;
}

PyObject *new_log_rows(RowNumbers numbers)
{
    LogRowsObject *self = (LogRowsObject *)LogRows_Type.tp_alloc(&LogRows_Type, 0);
    if (self) {
        buffer_init(&self->buffer);
        self->numbers = numbers;
    }
    return (PyObject *)self;
}

/* LogRows(replica_id, lsn, local_lsn=0) */
static PyObject *rows_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"", "", "local_lsn", NULL};
    PyObject *given[3] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!|O!:LogRows", names, &PyLong_Type, given, &PyLong_Type,
                                     given + 1, &PyLong_Type, given + 2))
        return NULL;
    RowNumbers numbers = {.replica_id = PyLong_AsUnsignedLongLong(given[0])};
    if (!PyErr_Occurred())
        numbers.lsn = PyLong_AsUnsignedLongLong(given[1]);
    if (!PyErr_Occurred() && given[2])
        numbers.local_lsn = PyLong_AsUnsignedLongLong(given[2]);
    return PyErr_Occurred() ? NULL : new_log_rows(numbers);
}

static void rows_dealloc(PyObject *object)
{
    buffer_free(&as_rows(object)->buffer);
    PyMem_Free(as_rows(object)->ends);
    Py_TYPE(object)->tp_free(object);
}

int log_rows_are_empty(PyObject *rows)
{
    return !as_rows(rows)->buffer.size;
}

void log_rows_begin(PyObject *rows, double timestamp)
{
    as_rows(rows)->numbers.timestamp = timestamp;
}

PyObject *log_rows_part(PyObject *rows, Py_ssize_t start, Py_ssize_t size)
{
    if (start + size > as_rows(rows)->buffer.size) /* for lack of memory, `blocks` has lost them */
        return PyErr_NoMemory();
    return PyBytes_FromStringAndSize((const char *)as_rows(rows)->buffer.data + start, size);
}

/* -- the end of the buffer -- */

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

/* Make room for a transaction of at most so many bytes. Returns where it begins; NULL with an exception. */
static uint8_t *begin_transaction(LogRowsObject *self, size_t size)
{
    if (!is_open(self) || (self->count == self->room && grow_ends(self) < 0))
        return NULL;
    if (size > PY_SSIZE_T_MAX)
        return (uint8_t *)PyErr_NoMemory();
    uint8_t *at = buffer_grow(&self->buffer, (Py_ssize_t)size);
    if (at)
        self->buffer.size -= (Py_ssize_t)size;
    return at;
}

/* Append the bytes written up to `end`. */
static void end_transaction(LogRowsObject *self, Py_ssize_t end)
{
    Py_ssize_t begin = self->count ? self->ends[self->count - 1] : 0;
    self->buffer.size = end;
    if (BLOCK_HEAD_SIZE + end - begin >= BLOCK_SIZE)
        self->ends[self->count++] = end;
}

/* -- transactions -- */

int log_rows_append(PyObject *rows, const LogChange *changes, Py_ssize_t count)
{
    LogRowsObject *self = as_rows(rows);
    uint8_t *at = begin_transaction(self, transaction_size_max(changes, count));
    if (!at)
        return -1;
    end_transaction(self, put_transaction(at, &self->numbers, changes, count) - self->buffer.data);
    return 0;
}

void log_rows_count(PyObject *rows, const LogChange *changes, Py_ssize_t count)
{
    RowNumbers *numbers = &as_rows(rows)->numbers;
    for (const LogChange *change = changes; change < changes + count; change++)
        (*(change->is_local ? &numbers->local_lsn : &numbers->lsn))++;
}

/* -- methods -- */

/* Read requests, which stay as long as the sequence: types and bodies. Returns 0; -1 with an exception. */
static int read_requests(PyObject *requests, LogChange *changes)
{
    for (Py_ssize_t place = 0; place < PySequence_Fast_GET_SIZE(requests); place++) {
        PyObject *request = PySequence_Fast_GET_ITEM(requests, place);
        if (!PyTuple_Check(request) || PyTuple_GET_SIZE(request) != 2 || !PyLong_Check(PyTuple_GET_ITEM(request, 0))
            || !PyBytes_Check(PyTuple_GET_ITEM(request, 1))) {
            PyErr_SetString(PyExc_TypeError, "a request is a tuple of its type and its body, which are int and bytes");
            return -1;
        }
        PyObject *body = PyTuple_GET_ITEM(request, 1);
        changes[place] = (LogChange){
            .type = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(request, 0)),
            .space_id = NO_SPACE,
            .data = (const uint8_t *)PyBytes_AS_STRING(body),
            .size = (size_t)PyBytes_GET_SIZE(body),
        };
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* append(requests) */
static PyObject *rows_append(PyObject *self, PyObject *given)
{
    PyObject *requests = PySequence_Fast(given, "requests are a sequence");
    if (!requests)
        return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(requests);
    LogChange *changes = PyMem_New(LogChange, (size_t)count);
    int done = -1;
    if (!changes)
        PyErr_NoMemory();
    else if (read_requests(requests, changes) == 0)
        done = log_rows_append(self, changes, count);
    PyMem_Free(changes);
    Py_DECREF(requests);
    return done < 0 ? NULL : Py_NewRef(Py_None);
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
    RowNumbers numbers = as_rows(self)->numbers;
    numbers.timestamp = 0;
    return new_log_rows(numbers);
}

static Py_ssize_t rows_length(PyObject *self)
{
    return as_rows(self)->buffer.size;
}

static PyMethodDef rows_methods[] = {
    {"append", rows_append, METH_O, "Append a transaction of requests."},
    {"blocks", rows_blocks, METH_NOARGS, "The rows of each block; no more may be appended."},
    {"following", rows_following, METH_NOARGS, "Return rows that follow, none yet."},
    {NULL},
};

static PyMemberDef rows_members[] = {
    {"lsn", T_ULONGLONG, offsetof(LogRowsObject, numbers.lsn), READONLY, "the LSN of the last row"},
    {"local_lsn", T_ULONGLONG, offsetof(LogRowsObject, numbers.local_lsn), READONLY, "that of local spaces"},
    {"timestamp", T_DOUBLE, offsetof(LogRowsObject, numbers.timestamp), 0, "when the rows were committed"},
    {NULL},
};

static PySequenceMethods rows_sequence = {.sq_length = rows_length};

PyTypeObject LogRows_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.LogRows",
    .tp_doc = "Rows of committed transactions, to be written together.",
    .tp_basicsize = sizeof(LogRowsObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = rows_new,
    .tp_dealloc = rows_dealloc,
    .tp_as_sequence = &rows_sequence,
    .tp_methods = rows_methods,
    .tp_members = rows_members,
};
