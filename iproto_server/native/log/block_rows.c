/* BlockRows: the rows of an uncompressed block, a sequence of their changes. */
#include "../native.h"

typedef struct {
    PyObject_HEAD
    PyObject *block; /* bytes */
    BlockRows rows;
} BlockRowsObject;

static BlockRowsObject *as_rows(PyObject *object)
{
    return (BlockRowsObject *)object;
}

const BlockRows *block_rows(PyObject *object, const uint8_t **block)
{
    *block = (const uint8_t *)PyBytes_AS_STRING(as_rows(object)->block);
    return &as_rows(object)->rows;
}

/* Another thread may decompress the next block meanwhile. */
static int read_rows(BlockRowsObject *self)
{
    const uint8_t *block = (const uint8_t *)PyBytes_AS_STRING(self->block);
    size_t size = (size_t)PyBytes_GET_SIZE(self->block);
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = block_read(&self->rows, block, size);
    Py_END_ALLOW_THREADS
    if (done < 0)
        PyErr_NoMemory();
    else if (!done)
        PyErr_Format(PyExc_ValueError, "malformed row at %zu of the block's rows: %s", self->rows.fault_at,
                     self->rows.fault);
    return done > 0 ? 0 : -1;
}

/* BlockRows(payload) */
static PyObject *rows_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"", NULL};
    PyObject *block;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "S:BlockRows", names, &block))
        return NULL;
    BlockRowsObject *self = as_rows(type->tp_alloc(type, 0));
    if (!self)
        return NULL;
    self->block = Py_NewRef(block);
    if (read_rows(self) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void rows_dealloc(PyObject *object)
{
    block_free(&as_rows(object)->rows);
    Py_DECREF(as_rows(object)->block);
    Py_TYPE(object)->tp_free(object);
}

static Py_ssize_t rows_length(PyObject *object)
{
    return (Py_ssize_t)as_rows(object)->rows.count;
}

/* -- rows as tuples -- */

static PyObject *part(const BlockRowsObject *self, BlockPart part)
{
    if (!part.size)
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(self->block) + part.start, part.size);
}

static PyObject *number(uint64_t value)
{
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *space_of(const BlockRow *row)
{
    return row->has_space ? number(row->space_id) : Py_NewRef(Py_None);
}

/* The TSN may be below 0 where rows of several members are in a transaction. */
static PyObject *tsn_of(const BlockRow *row)
{
    return row->tsn == row->lsn ? number(row->lsn) : PyLong_FromLongLong((int64_t)row->tsn);
}

/* A tuple of new references, which are all taken; NULL with an exception, also if one of them is NULL. */
static PyObject *tuple_of(PyObject *const *parts, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    int failed = !tuple;
    for (Py_ssize_t place = 0; place < count; place++) {
        failed |= !parts[place];
        if (tuple)
            PyTuple_SET_ITEM(tuple, place, parts[place]);
        else
            Py_XDECREF(parts[place]);
    }
    if (failed)
        Py_CLEAR(tuple);
    return tuple;
}

/* As the attributes of Row in storage/xlog/row.py. */
static PyObject *row_of(const BlockRowsObject *self, const BlockRow *row)
{
    PyObject *body = row->body.size ? part(self, row->body) : PyBytes_FromStringAndSize(NULL, 0);
    PyObject *parts[] = {
        number(row->type), number(row->lsn), space_of(row), part(self, row->tuple), part(self, row->key),
        part(self, row->operations), number(row->index_id), number(row->index_base), body,
        PyFloat_FromDouble(row->timestamp), number(row->member), number(row->group_id), tsn_of(row), number(row->flags),
    };
    return tuple_of(parts, sizeof parts / sizeof *parts);
}

/* As Change in storage/xlog/decoder.py. */
static PyObject *change_of(const BlockRowsObject *self, const BlockRow *row)
{
    PyObject *parts[] = {
        number(row->type), number(row->lsn), number(row->member), space_of(row), part(self, row->tuple),
        part(self, row->key), part(self, row->operations), number(row->index_id), number(row->index_base),
    };
    return tuple_of(parts, sizeof parts / sizeof *parts);
}

/* A tuple of a snapshot, with its space. */
static PyObject *tuple_in_space(const BlockRowsObject *self, const BlockRow *row)
{
    PyObject *parts[] = {number(row->space_id), part(self, row->tuple)};
    return tuple_of(parts, 2);
}

/* -- methods -- */

int block_rows_position(PyObject *object, PyObject *given, size_t *position)
{
    *position = PyLong_AsSize_t(given);
    if (PyErr_Occurred())
        return -1;
    if (*position <= as_rows(object)->rows.count)
        return 0;
    PyErr_SetString(PyExc_IndexError, "the block has fewer rows");
    return -1;
}

static PyObject *rows_rows(PyObject *object, PyObject *ignored)
{
    const BlockRowsObject *self = as_rows(object);
    PyObject *list = PyList_New((Py_ssize_t)self->rows.count);
    for (size_t place = 0; list && place < self->rows.count; place++) {
        PyObject *row = row_of(self, self->rows.rows + place);
        if (row)
            PyList_SET_ITEM(list, (Py_ssize_t)place, row);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *rows_item(PyObject *object, Py_ssize_t position)
{
    const BlockRowsObject *self = as_rows(object);
    if (position >= 0 && (size_t)position < self->rows.count)
        return change_of(self, self->rows.rows + position);
    PyErr_SetString(PyExc_IndexError, "the block has fewer rows");
    return NULL;
}

static int is_tuple(const BlockRow *row)
{
    return row->has_space && row->tuple.size;
}

static PyObject *rows_tuples(PyObject *object, PyObject *ignored)
{
    const BlockRowsObject *self = as_rows(object);
    PyObject *list = PyList_New(0);
    for (size_t place = 0; list && place < self->rows.count; place++) {
        const BlockRow *row = self->rows.rows + place;
        PyObject *item = is_tuple(row) ? tuple_in_space(self, row) : NULL;
        if (is_tuple(row) && (!item || PyList_Append(list, item) < 0))
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* run(position): the space of a tuple, the tuples from there on in the same space, and the position behind them */
static PyObject *rows_run(PyObject *object, PyObject *given)
{
    const BlockRowsObject *self = as_rows(object);
    size_t position;
    if (block_rows_position(object, given, &position) < 0)
        return NULL;
    PyObject *tuples = PyList_New(0);
    uint64_t space_id = position < self->rows.count ? self->rows.rows[position].space_id : 0;
    for (; tuples && position < self->rows.count; position++) {
        const BlockRow *row = self->rows.rows + position;
        if (!is_tuple(row))
            continue;
        if (row->space_id != space_id)
            break;
        PyObject *tuple = part(self, row->tuple);
        if (!tuple || PyList_Append(tuples, tuple) < 0)
            Py_CLEAR(tuples);
        Py_XDECREF(tuple);
    }
    return tuples ? Py_BuildValue("KNn", (unsigned long long)space_id, tuples, (Py_ssize_t)position) : NULL;
}

static PyObject *get_is_whole(PyObject *object, void *closure)
{
    const BlockRows *rows = &as_rows(object)->rows;
    return PyBool_FromLong(!rows->count || rows->rows[rows->count - 1].flags & ROW_COMMIT);
}

static PyMethodDef rows_methods[] = {
    {"rows", rows_rows, METH_NOARGS, "Return the rows."},
    {"tuples", rows_tuples, METH_NOARGS, "Return the tuples of a snapshot with their spaces."},
    {"run", rows_run, METH_O, "Return the next tuples of one space."},
    {"append_to", (PyCFunction)(void (*)(void))block_rows_append_to, METH_FASTCALL, "Append tuples to trees."},
    {NULL},
};

static PyGetSetDef rows_attributes[] = {
    {"is_whole", get_is_whole, NULL, "whether the last row ends a transaction", NULL},
    {NULL},
};

static PySequenceMethods rows_sequence = {.sq_length = rows_length, .sq_item = rows_item};

PyTypeObject BlockRows_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.BlockRows",
    .tp_doc = "The rows of an uncompressed block.",
    .tp_basicsize = sizeof(BlockRowsObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = rows_new,
    .tp_dealloc = rows_dealloc,
    .tp_as_sequence = &rows_sequence,
    .tp_methods = rows_methods,
    .tp_getset = rows_attributes,
};
