/* Appending the tuples of a snapshot to primary indexes. Tuples that need a closer look are left to the caller. */
#include "../native.h"

static int is_loadable(const BlockRow *row)
{
    return row->type == BLOCK_INSERT && row->has_space && row->tuple.size && row->is_plain;
}

/* How many rows from here on have tuples of one space. */
static size_t count_alike(const BlockRow *rows, size_t count)
{
    size_t alike = 1;
    while (alike < count && is_loadable(rows + alike) && rows[alike].space_id == rows->space_id)
        alike++;
    return alike;
}

/* Append rows of one space. Returns how many, fewer where a row needs a closer look; -1 with an exception. */
static Py_ssize_t append_to(PyObject *tree_of, const uint8_t *block, const BlockRow *rows, size_t count)
{
    PyObject *tree = PyObject_CallFunction(tree_of, "K", (unsigned long long)rows->space_id);
    if (!tree)
        return -1;
    Py_ssize_t done = index_of_object(tree) ? tree_object_append(tree, block, rows, count) : 0;
    Py_DECREF(tree);
    return done;
}

/* append_to(position, tree_of): the position of the first row that needs a closer look */
PyObject *block_rows_append_to(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    size_t position;
    const uint8_t *block;
    const BlockRows *found = block_rows(self, &block);
    if (given != 2)
        return PyErr_Format(PyExc_TypeError, "append_to() takes a position and a function");
    if (block_rows_position(self, args[0], &position) < 0)
        return NULL;
    while (position < found->count) {
        const BlockRow *rows = found->rows + position;
        if (!rows->has_space || !rows->tuple.size) { /* about the replica set */
            position++;
            continue;
        }
        size_t count = is_loadable(rows) ? count_alike(rows, found->count - position) : 0;
        Py_ssize_t done = count ? append_to(args[1], block, rows, count) : 0;
        if (done < 0)
            return NULL;
        position += (size_t)done;
        if (!count || (size_t)done < count)
            break;
    }
    return PyLong_FromSize_t(position);
}
