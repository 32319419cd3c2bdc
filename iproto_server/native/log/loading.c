/* Loading the rows of snapshots and logs into primary indexes: storage.recovery.snapshot_rows, .log_replay. */
#include "../native.h"

#include "../../engine/core/replay.h"

/* -- snapshots -- */

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

/* -- logs -- */

enum { TARGETS_MAX = 8 };

/* A space whose rows change. */
typedef struct {
    uint32_t space_id;
    PyObject *tree, *names; /* references; `names` is a dict */
    Replay replay;
    FieldName fields[REPLAY_NAMES_MAX];
} Target;

typedef struct {
    PyObject *target_of;
    int count;
    Target targets[TARGETS_MAX];
} Targets;

/* Take the names of fields out of a dict, of which others are left to Python. Returns -1 with an exception. */
static int read_names(Target *target)
{
    PyObject *name, *number;
    Py_ssize_t place = 0;
    int count = 0;
    while (count < REPLAY_NAMES_MAX && PyDict_Next(target->names, &place, &name, &number)) {
        Py_ssize_t size;
        const char *text = PyUnicode_IsIdentifier(name) ? PyUnicode_AsUTF8AndSize(name, &size) : NULL;
        unsigned long field = PyLong_AsUnsignedLong(number);
        if (PyErr_Occurred())
            return -1;
        if (text)
            target->fields[count++] = (FieldName){(const uint8_t *)text, (size_t)size, (uint32_t)field};
    }
    target->replay.names = target->fields;
    target->replay.name_count = count;
    return 0;
}

/* Returns 1; 0 if the space is left to Python; -1 with an exception. */
static int add_target(Targets *targets, uint32_t space_id)
{
    PyObject *found = PyObject_CallFunction(targets->target_of, "k", (unsigned long)space_id);
    if (!found || found == Py_None) {
        Py_XDECREF(found);
        return found ? 0 : -1;
    }
    Target *target = targets->targets + targets->count;
    int is_right = PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 2;
    if (!is_right || !tree_object_of_rows(PyTuple_GET_ITEM(found, 0)) || !PyDict_CheckExact(PyTuple_GET_ITEM(found, 1))) {
        Py_DECREF(found);
        PyErr_SetString(PyExc_TypeError, "rows of a log go to a tree of rows, with the names of its fields");
        return -1;
    }
    target->space_id = space_id;
    target->tree = Py_NewRef(PyTuple_GET_ITEM(found, 0));
    target->names = Py_NewRef(PyTuple_GET_ITEM(found, 1));
    Py_DECREF(found);
    replay_begin(&target->replay, tree_object_of_rows(target->tree));
    targets->count++;
    return read_names(target) < 0 ? -1 : 1;
}

/* The place of a space's target; -1 if Python has to take its rows, maybe with an exception. */
static int find_target(Targets *targets, uint32_t space_id, int latest)
{
    if (latest >= 0 && targets->targets[latest].space_id == space_id)
        return latest;
    for (int place = 0; place < targets->count; place++)
        if (targets->targets[place].space_id == space_id)
            return place;
    return targets->count < TARGETS_MAX && add_target(targets, space_id) > 0 ? targets->count - 1 : -1;
}

static void release_targets(Targets *targets)
{
    while (targets->count) {
        Target *target = targets->targets + --targets->count;
        replay_end(&target->replay);
        Py_DECREF(target->tree);
        Py_DECREF(target->names);
    }
}

/* Apply rows of a member, of which the first one has a LSN. Returns how many; -1 with an exception. */
static Py_ssize_t replay_all(Targets *targets, const uint8_t *block, const BlockRows *found, uint32_t member,
                             uint64_t lsn, uint64_t limit)
{
    int target = -1;
    size_t done = 0;
    for (; done < found->count; done++, lsn++) {
        const BlockRow *row = found->rows + done;
        if (row->member != member || row->lsn != lsn || lsn > limit)
            break;
        target = find_target(targets, row->space_id, target);
        int is_done = target < 0 ? 0 : replay_row(&targets->targets[target].replay, block, row);
        if (is_done < 0)
            PyErr_NoMemory();
        if (is_done <= 0)
            break;
    }
    return PyErr_Occurred() ? -1 : (Py_ssize_t)done;
}

/* replay_rows(block, member, lsn, limit, target_of): how many rows were applied, and whether these are all */
FUNCTION(native_replay_rows)
{
    if (count != 5 || !PyBytes_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "replay_rows() takes a block, a member, two LSNs and a function");
        return NULL;
    }
    const uint8_t *block = (const uint8_t *)PyBytes_AS_STRING(args[0]);
    size_t size = (size_t)PyBytes_GET_SIZE(args[0]);
    unsigned long member = PyLong_AsUnsignedLong(args[1]);
    unsigned long long lsn = PyLong_AsUnsignedLongLong(args[2]), limit = PyLong_AsUnsignedLongLong(args[3]);
    if (PyErr_Occurred())
        return NULL;
    BlockRows found = {0};
    int is_usual;
    Py_BEGIN_ALLOW_THREADS
    is_usual = block_read_log(&found, block, size);
    Py_END_ALLOW_THREADS
    if (is_usual < 0) {
        block_free(&found);
        return PyErr_NoMemory();
    }
    Targets *targets = PyMem_Calloc(1, sizeof *targets);
    Py_ssize_t done = -1;
    if (targets) {
        targets->target_of = args[4];
        done = is_usual ? replay_all(targets, block, &found, (uint32_t)member, lsn, limit) : 0;
        release_targets(targets);
        PyMem_Free(targets);
    } else {
        PyErr_NoMemory();
    }
    int are_all = is_usual && done == (Py_ssize_t)found.count;
    block_free(&found);
    return done < 0 ? NULL : Py_BuildValue("nO", done, are_all ? Py_True : Py_False);
}
