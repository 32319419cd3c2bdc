/* The binding of a view of a primary index (engine/core/tree/view.h), which reads many rows at a time:
 * box.index.sorted_map.TreeView.
 */
#include "../native.h"

typedef struct {
    PyObject_HEAD
    View view;
    PyObject *tree; /* the Tree; NULL once the view is closed */
} TreeViewObject;

static inline View *view_of(PyObject *self)
{
    return &((TreeViewObject *)self)->view;
}

static void close_view(PyObject *self)
{
    view_close(view_of(self));
    Py_CLEAR(((TreeViewObject *)self)->tree);
}

/* -- reading -- */

/* What is done with each row. Returns -1 with an exception. */
typedef int (*Taker)(void *what, const uint8_t *row, size_t size);

/* Take the next rows: look at no more than `count` entries, and stop when there are `size` bytes of rows. Returns -1
 * with an exception: then the view is closed. */
static int take_rows(PyObject *self, size_t count, size_t size, Taker take, void *what)
{
    View *view = view_of(self);
    int found = view_resume(view) < 0 ? -1 : VIEW_NOTHING, failed = 0;
    for (size_t taken = 0; !failed && found > VIEW_END && count && taken < size; count--) {
        const uint8_t *row;
        size_t row_size;
        found = view_next(view, &row, &row_size);
        if (found == VIEW_ROW) {
            failed = take(what, row, row_size);
            taken += row_size;
        }
    }
    if (!failed && found > VIEW_END)
        found = view_pause(view) < 0 ? -1 : found;
    if (found < 0)
        PyErr_NoMemory();
    if (failed || found <= VIEW_END)
        close_view(self);
    return failed || found < 0 ? -1 : 0;
}

static int append_to_list(void *list, const uint8_t *row, size_t size)
{
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)row, (Py_ssize_t)size);
    int failed = bytes ? PyList_Append(list, bytes) : -1;
    Py_XDECREF(bytes);
    return failed;
}

static int read_limits(PyObject *const *args, size_t *count, size_t *size)
{
    Py_ssize_t limits[2];
    for (int place = 0; place < 2; place++) {
        limits[place] = PyLong_AsSsize_t(args[place]);
        if (limits[place] == -1 && PyErr_Occurred())
            return -1;
        if (limits[place] < 1) {
            PyErr_SetString(PyExc_ValueError, "a view reads at least one row");
            return -1;
        }
    }
    *count = (size_t)limits[0];
    *size = (size_t)limits[1];
    return 0;
}

/* take(count, size) */
static PyObject *method_take(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    size_t count, size;
    if (given != 2) {
        PyErr_SetString(PyExc_TypeError, "take() takes a number of rows and a number of bytes");
        return NULL;
    }
    if (read_limits(args, &count, &size) < 0)
        return NULL;
    PyObject *rows = PyList_New(0);
    if (rows && take_rows(self, count, size, append_to_list, rows) < 0)
        Py_CLEAR(rows);
    return rows;
}

/* Rows with a number, and with bytes that are the same for all of them, in front of each. */
typedef struct {
    PyObject *bytes; /* where they go, which is longer */
    Py_ssize_t size;
    const char *head, *tail;
    Py_ssize_t head_size, tail_size;
    uint64_t first, number; /* of the first row, and of the next one */
} Numbered;

/* Make room for some more bytes. Returns where they go; NULL with an exception. */
static uint8_t *room_for(Numbered *rows, Py_ssize_t count)
{
    if (count > PyBytes_GET_SIZE(rows->bytes) - rows->size
        && _PyBytes_Resize(&rows->bytes, 2 * (rows->size + count)) < 0)
        return NULL;
    return (uint8_t *)PyBytes_AS_STRING(rows->bytes) + rows->size;
}

static uint8_t *copy(uint8_t *at, const void *bytes, Py_ssize_t size)
{
    memcpy(at, bytes, (size_t)size);
    return at + size;
}

static int append_numbered(void *what, const uint8_t *row, size_t size)
{
    Numbered *rows = what;
    uint8_t *start = room_for(rows, rows->head_size + UNSIGNED_SIZE_MAX + rows->tail_size + (Py_ssize_t)size);
    if (!start)
        return -1;
    uint8_t *at = copy(start, rows->head, rows->head_size);
    at = put_unsigned(at, rows->number++);
    at = copy(at, rows->tail, rows->tail_size);
    at = copy(at, row, (Py_ssize_t)size);
    rows->size += at - start;
    return 0;
}

/* take_numbered(head, number, tail, count, size): (the rows, how many there are) */
static PyObject *method_take_numbered(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    enum { NUMBERED_ROOM = 192 * 1024 }; /* for a block of rows */
    size_t count, size;
    if (given != 5 || !PyBytes_CheckExact(args[0]) || !PyBytes_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "take_numbered() takes bytes, a number, bytes, and numbers of rows and bytes");
        return NULL;
    }
    uint64_t number = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred() || read_limits(args + 3, &count, &size) < 0)
        return NULL;
    Numbered rows = {
        .head = PyBytes_AS_STRING(args[0]), .head_size = PyBytes_GET_SIZE(args[0]),
        .tail = PyBytes_AS_STRING(args[2]), .tail_size = PyBytes_GET_SIZE(args[2]),
        .first = number, .number = number,
    };
    rows.bytes = PyBytes_FromStringAndSize(NULL, NUMBERED_ROOM); /* which is given out to nobody before it is filled */
    int done = rows.bytes ? take_rows(self, count, size, append_numbered, &rows) : -1;
    if (done == 0 && _PyBytes_Resize(&rows.bytes, rows.size) == 0)
        return Py_BuildValue("NK", rows.bytes, (unsigned long long)(rows.number - rows.first));
    Py_XDECREF(rows.bytes);
    return NULL;
}

static PyObject *method_close(PyObject *self, PyObject *none)
{
    close_view(self);
    Py_RETURN_NONE;
}

static PyObject *get_is_done(PyObject *self, void *closure)
{
    return PyBool_FromLong(!view_of(self)->tree);
}

static PyObject *get_kept(PyObject *self, void *closure)
{
    return PyLong_FromSize_t(view_of(self)->kept.size);
}

/* -- making one -- */

/* TreeView(tree) */
static PyObject *view_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tree", NULL};
    PyObject *tree;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:TreeView", names, &tree))
        return NULL;
    Index *index = index_of_object(tree);
    if (!index || index->rows) {
        PyErr_SetString(PyExc_TypeError, "a view is of a tree with rows of its own");
        return NULL;
    }
    PyObject *self = type->tp_alloc(type, 0); /* all zeros: a closed view */
    if (self && view_open(view_of(self), &index->tree) < 0) {
        Py_CLEAR(self);
        PyErr_NoMemory();
    }
    if (self && view_of(self)->tree)
        ((TreeViewObject *)self)->tree = Py_NewRef(tree);
    return self;
}

static void view_dealloc(PyObject *self)
{
    close_view(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef view_methods[] = {
    {"take", (PyCFunction)(void (*)(void))method_take, METH_FASTCALL, "The next rows."},
    {"take_numbered", (PyCFunction)(void (*)(void))method_take_numbered, METH_FASTCALL,
     "The next rows in one piece, numbered, and how many there are."},
    {"close", method_close, METH_NOARGS, "Read no more, and drop the rows that are kept."},
    {NULL},
};

static PyGetSetDef view_attributes[] = {
    {"is_done", get_is_done, NULL, "Whether there are no more rows.", NULL},
    {"kept", get_kept, NULL, "The number of entries that are kept as they were.", NULL},
    {NULL},
};

PyTypeObject TreeView_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.TreeView",
    .tp_doc = "A view of an ordered map that changes.",
    .tp_basicsize = sizeof(TreeViewObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = view_new,
    .tp_dealloc = view_dealloc,
    .tp_methods = view_methods,
    .tp_getset = view_attributes,
};
