/* Changes of the rows of a space: the twin of box.memtx.MemtxSpace.
 *
 * Usual is what the rows of applications are: no trigger that decides what is stored, no sequence, no effect beside
 * the row, one key in every index, and no interactive transaction that wants to know. All else is for Python, and so
 * is every change that is refused: up to there nothing has changed.
 */
#include "native.h"

PyTypeObject *stored_space_type;
Slot space_slots[SPACE_SLOTS] = {
    {"format", 0}, {"primary", 0}, {"indexes", 0}, {"secondaries", 0}, {"multikeys", 0}, {"secondaries_by_field", 0},
    {"primary_fields", 0}, {"attached", 0}, {"is_dropped", 0}, {"_parsed_operations", 0}, {"_transactions", 0},
    {"bsize", 0}, {"on_replace", 0}, {"before_replace", 0}, {"system_hook", 0},
};
Slot manager_slots[MANAGER_SLOTS] = {{"statements", 0}, {"is_read_only", 0}, {"interactive", 0}, {"take_out", 0}};

static PyTypeObject *manager_type, *format_type, *operations_type, *list_type;
static Slot format_check = {"check", 0}, operations_assignment = {"assignment", 0}, list_functions = {"functions", 0};

/* -- what is usual -- */

PyObject *space_manager(PyObject *space)
{
    PyObject *manager = Py_TYPE(space) == stored_space_type ? SPACE(space, TRANSACTIONS) : NULL;
    return manager && Py_TYPE(manager) == manager_type ? manager : NULL;
}

static PyObject *functions_of(PyObject *list)
{
    PyObject *functions = list && Py_TYPE(list) == list_type ? get_slot(list, &list_functions) : NULL;
    return functions && PyTuple_CheckExact(functions) ? functions : NULL;
}

PyObject *space_triggers(PyObject *space)
{
    return functions_of(SPACE(space, ON_REPLACE));
}

static int is_empty_tuple(PyObject *tuple)
{
    return tuple && PyTuple_CheckExact(tuple) && !PyTuple_GET_SIZE(tuple);
}

/* Whether a change of a row is nothing but that, and may be made. */
static int is_usual(PyObject *space)
{
    PyObject *manager = space_manager(space);
    return manager && MANAGER(manager, READ_ONLY) == Py_False && MANAGER(manager, INTERACTIVE) == Py_None
        && SPACE(space, ATTACHED) == Py_None && SPACE(space, SYSTEM_HOOK) == Py_None
        && is_empty_tuple(SPACE(space, MULTIKEYS)) && is_empty_tuple(functions_of(SPACE(space, BEFORE_REPLACE)))
        && space_triggers(space);
}

static int fits_format(PyObject *space, PyObject *fields)
{
    PyObject *format = SPACE(space, FORMAT);
    PyObject *check = format && Py_TYPE(format) == format_type ? get_slot(format, &format_check) : NULL;
    return check && Py_TYPE(check) == &RowCheck_Type && row_fits(check, fields);
}

/* -- requests -- */

static PyObject *store(PyObject *space, Quick *primary, PyObject *row, PyObject *fields, int is_insert)
{
    PyObject *key = row_key(primary->key_of, fields, NULL);
    PyObject *present = key ? Py_XNewRef(tree_get(primary->tree, key)) : NULL;
    PyObject *old = present && !is_insert ? new_tuple(present, SPACE(space, FORMAT), NULL) : Py_None;
    int done = 0;
    if (key && old && !(present && is_insert))
        done = space_change(space, key, old, row, SPACE(space, SECONDARIES));
    if (old != Py_None)
        Py_XDECREF(old);
    Py_XDECREF(present);
    Py_XDECREF(key);
    return done > 0 ? Py_NewRef(row) : NULL;
}

PyObject *space_store(PyObject *space, PyObject *row, int is_insert)
{
    if (!is_usual(space) || Py_TYPE(row) != &Tuple_Type)
        return NULL;
    PyObject *fields = tuple_fields((TupleObject *)row), *primary = SPACE(space, PRIMARY), *stored = NULL;
    Quick *quick = primary && fields && fits_format(space, fields) ? quick_of(primary) : NULL;
    if (quick) {
        Py_INCREF(quick);
        stored = store(space, quick, row, fields, is_insert);
        Py_DECREF(quick);
    }
    return stored;
}

PyObject *space_delete(PyObject *space, PyObject *index_id, PyObject *const *key, Py_ssize_t key_size)
{
    PyObject *primary_key, *row, *old = NULL;
    if (!is_usual(space) || space_locate(space, index_id, key, key_size, &primary_key, &row) <= 0)
        return NULL;
    if (!row)
        old = Py_NewRef(Py_None);
    else if ((old = new_tuple(row, SPACE(space, FORMAT), NULL))
             && space_change(space, primary_key, old, Py_None, SPACE(space, SECONDARIES)) <= 0)
        Py_CLEAR(old);
    Py_XDECREF(primary_key);
    Py_XDECREF(row);
    return old;
}

/* The row with a field assigned, a new reference; NULL, maybe without an exception. */
static PyObject *assigned(PyObject *space, PyObject *old, Py_ssize_t field_no, PyObject *value)
{
    PyObject *known = tuple_fields((TupleObject *)old);
    if (!known || field_no >= PyList_GET_SIZE(known))
        return NULL;
    PyObject *raw = assign(field_no, value, ((RawObject *)old)->raw), *new = NULL;
    PyObject *unpacked = raw && raw != Py_None ? unpack(value) : NULL;
    PyObject *fields = unpacked ? PyList_GetSlice(known, 0, PyList_GET_SIZE(known)) : NULL;
    if (fields && PyList_SetItem(fields, field_no, Py_NewRef(unpacked)) == 0 && fits_format(space, fields))
        new = new_tuple(raw, SPACE(space, FORMAT), fields);
    Py_XDECREF(fields);
    Py_XDECREF(unpacked);
    Py_XDECREF(raw);
    return new;
}

/* Whether the primary key is what it was: 1 or 0; -1 with an exception. */
static int has_same_key(PyObject *space, PyObject *key, PyObject *number, PyObject *new)
{
    PyObject *primary = SPACE(space, PRIMARY), *primary_fields = SPACE(space, PRIMARY_FIELDS);
    int is_known = primary_fields && PyFrozenSet_CheckExact(primary_fields);
    int is_part = is_known ? PySet_Contains(primary_fields, number) : 1;
    if (is_part <= 0)
        return is_part ? -1 : 1;
    Quick *quick = primary ? (Quick *)Py_XNewRef(quick_of(primary)) : NULL;
    PyObject *fields = quick ? tuple_fields((TupleObject *)new) : NULL;
    PyObject *new_key = fields ? row_key(quick->key_of, fields, NULL) : NULL;
    int is_same = new_key ? PyObject_RichCompareBool(key, new_key, Py_EQ) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(new_key);
    Py_XDECREF(quick);
    return is_same;
}

/* The secondary indexes that have a part in a field, borrowed. */
static PyObject *touched(PyObject *space, PyObject *number, PyObject *nothing)
{
    PyObject *by_field = SPACE(space, BY_FIELD);
    PyObject *found = by_field && PyDict_CheckExact(by_field) ? PyDict_GetItemWithError(by_field, number) : NULL;
    return found ? found : nothing;
}

static PyObject *update(PyObject *space, PyObject *key, PyObject *old, PyObject *number, PyObject *value)
{
    static PyObject *nothing;
    if (!nothing && !(nothing = PyTuple_New(0)))
        return NULL;
    Py_ssize_t field_no = PyLong_AsSsize_t(number);
    PyObject *new = field_no >= 0 ? assigned(space, old, field_no, value) : NULL;
    if (new && (has_same_key(space, key, number, new) <= 0
                || space_change(space, key, old, new, touched(space, number, nothing)) <= 0))
        Py_CLEAR(new);
    return new;
}

PyObject *space_assign(PyObject *space, PyObject *index_id, PyObject *const *key, Py_ssize_t key_size, PyObject *number,
                       PyObject *value)
{
    PyObject *primary_key, *row, *new = NULL;
    if (!PyLong_CheckExact(number) || !PyBytes_CheckExact(value) || !is_usual(space)
        || space_locate(space, index_id, key, key_size, &primary_key, &row) <= 0)
        return NULL;
    PyObject *old = row ? new_tuple(row, SPACE(space, FORMAT), NULL) : NULL;
    if (old)
        new = update(space, primary_key, old, number, value);
    else if (!row)
        new = Py_NewRef(Py_None);
    Py_XDECREF(old);
    Py_XDECREF(primary_key);
    Py_XDECREF(row);
    return new;
}

PyObject *space_update(PyObject *space, PyObject *index_id, PyObject *const *key, Py_ssize_t key_size,
                       PyObject *operations)
{
    PyObject *assignment =
        Py_TYPE(operations) == operations_type ? get_slot(operations, &operations_assignment) : NULL;
    if (!assignment || !PyTuple_CheckExact(assignment) || PyTuple_GET_SIZE(assignment) != 2)
        return NULL;
    PyObject *number = PyTuple_GET_ITEM(assignment, 0), *value = PyTuple_GET_ITEM(assignment, 1);
    return space_assign(space, index_id, key, key_size, number, value);
}

/* -- methods -- */

static int prepare(PyTypeObject *type)
{
    static const char *const transaction = "iproto_server.box.transaction";
    static const char *const operation = "iproto_server.box.update.operation";
    if (stored_space_type == type)
        return 0;
    if (prepare_changes() < 0 || prepare_statements() < 0 || find_slots((PyObject *)type, space_slots, SPACE_SLOTS) < 0
        || !(manager_type = find_class(transaction, "TransactionManager", manager_slots, MANAGER_SLOTS))
        || !(format_type = find_class("iproto_server.box.format", "Format", &format_check, 1))
        || !(operations_type = find_class(operation, "Operations", &operations_assignment, 1))
        || !(list_type = find_class("iproto_server.box.trigger", "TriggerList", &list_functions, 1)))
        return -1;
    stored_space_type = (PyTypeObject *)Py_NewRef(type);
    return 0;
}

enum { INSERT, REPLACE, UPDATE, DELETE, CHANGE, METHODS };
static Method methods[METHODS];

METHOD_FUNCTION(method_insert)
{
    ANSWER(count == 1 && !names ? space_store(self, args[0], 1) : NULL, methods[INSERT]);
}

METHOD_FUNCTION(method_replace)
{
    ANSWER(count == 1 && !names ? space_store(self, args[0], 0) : NULL, methods[REPLACE]);
}

#define ITEMS(list) ((PyListObject *)(list))->ob_item, PyList_GET_SIZE(list)

/* update(index_id, key, operations) */
METHOD_FUNCTION(method_update)
{
    int is_known = count == 3 && !names && PyList_CheckExact(args[1]);
    ANSWER(is_known ? space_update(self, args[0], ITEMS(args[1]), args[2]) : NULL, methods[UPDATE]);
}

/* delete(index_id, key) */
METHOD_FUNCTION(method_delete)
{
    int is_known = count == 2 && !names && PyList_CheckExact(args[1]);
    ANSWER(is_known ? space_delete(self, args[0], ITEMS(args[1])) : NULL, methods[DELETE]);
}

static int is_tuple_or_none(PyObject *row)
{
    return row == Py_None || Py_TYPE(row) == &Tuple_Type;
}

/* _change(key, old, new, operation, secondaries) */
METHOD_FUNCTION(method_change)
{
    int is_known = count == 5 && !names && PyBytes_CheckExact(args[0]) && is_tuple_or_none(args[1])
        && is_tuple_or_none(args[2]) && is_usual(self);
    int done = is_known ? space_change(self, args[0], args[1], args[2], args[4]) : 0;
    ANSWER(done > 0 ? Py_NewRef(Py_None) : NULL, methods[CHANGE]);
}

static Method methods[METHODS] = {
    METHOD_ENTRY("insert", method_insert, "insert($self, row, /)\n--\n\nStore a new row and answer it."),
    METHOD_ENTRY("replace", method_replace, "replace($self, row, /)\n--\n\nStore a row in the place of another."),
    METHOD_ENTRY("update", method_update, "update($self, index_id, key, operations, /)\n--\n\nChange a row."),
    METHOD_ENTRY("delete", method_delete, "delete($self, index_id, key, /)\n--\n\nRemove a row and answer it."),
    METHOD_ENTRY("_change", method_change, "Change one row, report it, and run the triggers."),
};

MethodTable stored_space_methods = {"MemtxSpace", prepare, methods, METHODS};
