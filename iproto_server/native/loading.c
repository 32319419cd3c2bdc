/* Loading the rows of snapshots into primary indexes: storage.recovery.snapshot_rows. */
#include "native.h"

/* Append rows of one space. Returns how many, fewer where a row needs a closer look; -1 with an exception. */
static Py_ssize_t append_to(PyObject *tree_of, const uint8_t *block, const BlockRow *rows, size_t count)
{
    PyObject *tree = PyObject_CallFunction(tree_of, "k", (unsigned long)rows->space_id);
    if (!tree)
        return -1;
    Py_ssize_t done = Py_TYPE(tree) == &Tree_Type ? tree_object_append(tree, block, rows, count) : 0;
    Py_DECREF(tree);
    return done;
}

static Py_ssize_t append_all(PyObject *tree_of, const uint8_t *block, const BlockRows *found)
{
    size_t done = 0;
    while (done < found->count) {
        const BlockRow *rows = found->rows + done;
        size_t count = 1;
        while (done + count < found->count && rows[count].space_id == rows->space_id)
            count++;
        Py_ssize_t appended = append_to(tree_of, block, rows, count);
        if (appended < 0)
            return -1;
        done += (size_t)appended;
        if ((size_t)appended < count)
            break;
    }
    return (Py_ssize_t)done;
}

/* append_rows(block, tree_of): how many rows were appended, and whether these are all */
FUNCTION(native_append_rows)
{
    if (count != 2 || !PyBytes_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "append_rows() takes a block and a function");
        return NULL;
    }
    const uint8_t *block = (const uint8_t *)PyBytes_AS_STRING(args[0]);
    size_t size = (size_t)PyBytes_GET_SIZE(args[0]);
    BlockRows found = {0};
    int is_usual;
    Py_BEGIN_ALLOW_THREADS
    is_usual = block_read_snapshot(&found, block, size);
    Py_END_ALLOW_THREADS
    PyObject *answer = NULL;
    if (is_usual < 0) {
        PyErr_NoMemory();
    } else {
        Py_ssize_t done = is_usual ? append_all(args[1], block, &found) : 0;
        if (done >= 0)
            answer = Py_BuildValue("nO", done, is_usual && (size_t)done == found.count ? Py_True : Py_False);
    }
    block_free(&found);
    return answer;
}
