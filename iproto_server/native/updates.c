/* Updates that are assignments of whole fields, the commonest of all: the twin of MemtxSpace.update, and of what reads
 * operations as procedures give them. Packed values take the places of packed values, and nothing else of a row is
 * looked at.
 */
#include "native.h"

static PyTypeObject *operations_type;
enum { ASSIGNMENT, IS_FLAT, OPERATIONS, OPERATIONS_SLOTS };
static Slot operations_slots[OPERATIONS_SLOTS] = {{"assignment", 0}, {"is_flat", 0}, {"_operations", 0}};

#define ASSIGNMENTS_MAX 8

/* What is referred to belongs to whoever has made this. */
typedef struct {
    int count;
    Py_ssize_t field_no[ASSIGNMENTS_MAX];
    PyObject *value[ASSIGNMENTS_MAX];    /* packed */
    PyObject *unpacked[ASSIGNMENTS_MAX]; /* NULL where that is not known yet */
} Assignments;

/* -- the new row -- */

/* Replace a field in packed fields and in a list of them. Returns 1; 0 unknown; -1 with an exception. */
static int assign_field(PyObject **raw, PyObject *fields, Py_ssize_t field_no, PyObject *value, PyObject *unpacked)
{
    if (field_no < 0 || field_no >= PyList_GET_SIZE(fields))
        return 0;
    PyObject *changed = assign(field_no, value, *raw);
    if (!changed || changed == Py_None) {
        Py_XDECREF(changed);
        return changed ? 0 : -1;
    }
    Py_SETREF(*raw, changed);
    unpacked = unpacked ? Py_NewRef(unpacked) : unpack(value);
    return !unpacked || PyList_SetItem(fields, field_no, unpacked) < 0 ? -1 : 1;
}

/* The row with fields assigned, a new reference; NULL, maybe without an exception. */
static PyObject *assigned(PyObject *space, PyObject *old, const Assignments *given)
{
    PyObject *known = tuple_fields((TupleObject *)old), *new = NULL;
    PyObject *fields = known ? PyList_GetSlice(known, 0, PyList_GET_SIZE(known)) : NULL;
    if (!fields)
        return NULL;
    PyObject *raw = Py_NewRef(((RawObject *)old)->raw);
    int done = 1;
    for (int place = 0; done > 0 && place < given->count; place++)
        done = assign_field(&raw, fields, given->field_no[place], given->value[place], given->unpacked[place]);
    if (done > 0 && space_row_fits(space, fields))
        new = new_tuple(raw, SPACE(space, FORMAT), fields);
    Py_DECREF(raw);
    Py_DECREF(fields);
    return new;
}

/* -- what it touches -- */

/* Whether a field is a part of the primary key: 1 or 0; -1 with an exception. */
static int is_key_part(PyObject *space, PyObject *number)
{
    PyObject *primary_fields = SPACE(space, PRIMARY_FIELDS);
    return primary_fields && PyFrozenSet_CheckExact(primary_fields) ? PySet_Contains(primary_fields, number) : 1;
}

/* Whether the primary key of a row is what it was: 1 or 0; -1 with an exception. */
static int has_key(PyObject *space, PyObject *key, PyObject *row)
{
    PyObject *primary = SPACE(space, PRIMARY);
    Quick *quick = primary ? (Quick *)Py_XNewRef(quick_of(primary)) : NULL;
    PyObject *fields = quick ? tuple_fields((TupleObject *)row) : NULL;
    PyObject *present = fields ? row_key(quick->key_of, fields, NULL) : NULL;
    int is_same = present ? PyObject_RichCompareBool(key, present, Py_EQ) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(present);
    Py_XDECREF(quick);
    return is_same;
}

/* The secondary indexes that have a part in a field, borrowed; NULL with an exception. */
static PyObject *indexes_of(PyObject *space, PyObject *number)
{
    static PyObject *none;
    if (!none && !(none = PyTuple_New(0)))
        return NULL;
    PyObject *by_field = SPACE(space, BY_FIELD);
    PyObject *found = by_field && PyDict_CheckExact(by_field) ? PyDict_GetItemWithError(by_field, number) : NULL;
    return found || PyErr_Occurred() ? found : none;
}

/* Put a row in the place of the one with its key. Returns 1; 0 unknown, nothing has changed; -1 with an exception. */
static int exchange(PyObject *space, PyObject *key, PyObject *old, PyObject *new, const Assignments *given)
{
    if (given->count > 1) {
        int is_same = has_key(space, key, new);
        return is_same > 0 ? space_change(space, key, old, new, SPACE(space, SECONDARIES)) : is_same;
    }
    PyObject *number = PyLong_FromSsize_t(given->field_no[0]);
    int done = number ? is_key_part(space, number) : -1;
    if (done >= 0 && (!done || (done = has_key(space, key, new)) > 0)) {
        PyObject *indexes = indexes_of(space, number);
        done = indexes ? space_change(space, key, old, new, indexes) : -1;
    }
    Py_XDECREF(number);
    return done;
}

static PyObject *update(PyObject *space, PyObject *index_id, PyObject *const *key, Py_ssize_t key_size,
                        const Assignments *given)
{
    PyObject *primary_key, *row, *new = NULL;
    if (!space_is_usual(space) || space_locate(space, index_id, key, key_size, &primary_key, &row) <= 0)
        return NULL;
    PyObject *old = row ? new_tuple(row, SPACE(space, FORMAT), NULL) : NULL;
    if (!row)
        new = Py_NewRef(Py_None);
    else if (old && (new = assigned(space, old, given)) && exchange(space, primary_key, old, new, given) <= 0)
        Py_CLEAR(new);
    Py_XDECREF(old);
    Py_XDECREF(primary_key);
    Py_XDECREF(row);
    return new;
}

/* -- operations that were read -- */

/* Add an assignment to those that are there. Returns 0 where it is none. */
static int add(Assignments *all, PyObject *number, PyObject *value, PyObject *unpacked)
{
    int overflow;
    long long field_no = PyLong_CheckExact(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : -1;
    if (field_no < 0 || field_no > INT32_MAX || !PyBytes_CheckExact(value) || all->count == ASSIGNMENTS_MAX)
        return 0;
    all->field_no[all->count] = (Py_ssize_t)field_no;
    all->unpacked[all->count] = unpacked;
    all->value[all->count++] = value;
    return 1;
}

static int is_equals_sign(PyObject *opcode)
{
    return PyUnicode_CheckExact(opcode) && PyUnicode_GET_LENGTH(opcode) == 1 && PyUnicode_READ_CHAR(opcode, 0) == '=';
}

PyObject *space_assign(PyObject *space, PyObject *index_id, PyObject *const *key, Py_ssize_t key_size, PyObject *number,
                       PyObject *value)
{
    Assignments all = {.count = 0};
    return add(&all, number, value, NULL) ? update(space, index_id, key, key_size, &all) : NULL;
}

/* Read an Operations. Returns 0 where it is more than assignments. */
static int read_operations(PyObject *operations, Assignments *all)
{
    PyObject *assignment = get_slot(operations, operations_slots + ASSIGNMENT);
    if (assignment && PyTuple_CheckExact(assignment) && PyTuple_GET_SIZE(assignment) == 2)
        return add(all, PyTuple_GET_ITEM(assignment, 0), PyTuple_GET_ITEM(assignment, 1), NULL);
    PyObject *each = get_slot(operations, operations_slots + OPERATIONS);
    if (get_slot(operations, operations_slots + IS_FLAT) != Py_True || !each || !PyTuple_CheckExact(each))
        return 0;
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(each); place++) {
        PyObject *operation = PyTuple_GET_ITEM(each, place); /* opcode, field_no, path, tokens, argument */
        if (!PyTuple_Check(operation) || PyTuple_GET_SIZE(operation) != 5
            || !is_equals_sign(PyTuple_GET_ITEM(operation, 0))
            || !add(all, PyTuple_GET_ITEM(operation, 1), PyTuple_GET_ITEM(operation, 4), NULL))
            return 0;
    }
    return all->count > 0;
}

PyObject *space_update(PyObject *space, PyObject *index_id, PyObject *const *key, Py_ssize_t key_size,
                       PyObject *operations)
{
    Assignments all = {.count = 0};
    if (Py_TYPE(operations) != operations_type || !read_operations(operations, &all))
        return NULL;
    return update(space, index_id, key, key_size, &all);
}

/* -- operations as procedures give them -- */

static int is_list_or_tuple(PyObject *value)
{
    return PyList_CheckExact(value) || PyTuple_CheckExact(value);
}

/* Whether a value is the same when it was packed and unpacked again. */
static int comes_back(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || value == Py_None
        || (type == &PyUnicode_Type && PyUnicode_IS_COMPACT_ASCII(value));
}

/* Read `("=", field, value)`. The packed value belongs to the caller. Returns 0 where Python has to read it. */
static int read_given(PyObject *space, PyObject *operation, Assignments *all)
{
    if (!is_list_or_tuple(operation) || PySequence_Fast_GET_SIZE(operation) != 3
        || !is_equals_sign(PySequence_Fast_GET_ITEM(operation, 0)))
        return 0;
    PyObject *field = PySequence_Fast_GET_ITEM(operation, 1), *given = PySequence_Fast_GET_ITEM(operation, 2), *names;
    if (PyUnicode_CheckExact(field))
        field = (names = format_names(SPACE(space, FORMAT))) ? PyDict_GetItemWithError(names, field) : NULL;
    Buffer buffer;
    buffer_init(&buffer);
    PyObject *value = NULL;
    if (field && write_value(&buffer, given, 0) > 0)
        value = PyBytes_FromStringAndSize((const char *)buffer.data, buffer.size);
    buffer_free(&buffer);
    if (!value || add(all, field, value, comes_back(given) ? given : NULL))
        return value != NULL;
    Py_DECREF(value);
    return 0;
}

PyObject *space_update_given(PyObject *space, PyObject *index_id, PyObject *const *key, Py_ssize_t key_size,
                             PyObject *operations)
{
    Assignments all = {.count = 0};
    Py_ssize_t count = is_list_or_tuple(operations) ? PySequence_Fast_GET_SIZE(operations) : 0;
    int is_known = count > 0;
    for (Py_ssize_t place = 0; is_known && place < count; place++)
        is_known = read_given(space, PySequence_Fast_GET_ITEM(operations, place), &all);
    PyObject *row = is_known ? update(space, index_id, key, key_size, &all) : NULL;
    while (all.count)
        Py_DECREF(all.value[--all.count]);
    return row;
}

int prepare_updates(void)
{
    operations_type =
        find_class("iproto_server.box.update.operation", "Operations", operations_slots, OPERATIONS_SLOTS);
    return operations_type ? 0 : -1;
}
