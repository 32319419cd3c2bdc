/* Changes of the rows of a space: the twin of box.memtx.MemtxSpace.
 *
 * Usual is what the rows of applications are: no trigger that decides what is stored, no sequence, no effect beside
 * the row, one key in every index, and no interactive transaction that wants to know. All else is for Python, and so
 * is every change that is refused: up to there nothing has changed.
 */
#include "../native.h"

PyTypeObject *stored_space_type;
Slot space_slots[SPACE_SLOTS] = {
    {"format", 0}, {"primary", 0}, {"indexes", 0}, {"secondaries", 0}, {"multikeys", 0}, {"secondaries_by_field", 0},
    {"primary_fields", 0}, {"attached", 0}, {"is_dropped", 0}, {"doubles", 0}, {"_transactions", 0},
    {"bsize", 0}, {"on_replace", 0}, {"before_replace", 0}, {"system_hook", 0},
};
Slot manager_slots[MANAGER_SLOTS] = {
    {"statements", 0}, {"is_read_only", 0}, {"interactive", 0}, {"take_out", 0}, {"_on_commit", 0}, {"_on_rollback", 0},
    {"has_logged", 0}, {"unwritten", 0}, {"is_writing", 0}, {"is_write_due", 0}, {"write_soon", 0}, {"journal", 0},
    {"on_change", 0}, {"nesting", 0},
};

static PyTypeObject *manager_type, *format_type, *list_type;
enum { CHECK, NAMES, PACKED_NAMES, FORMAT_SLOTS };
static Slot format_slots[FORMAT_SLOTS] = {{"check", 0}, {"names", 0}, {"packed_names", 0}}, list_functions = {"functions", 0};

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

/* Whether another statement may begin within those whose triggers are running. */
static int may_nest(PyObject *manager)
{
    enum { NESTING_MAX = 4 }; /* as in box/txn/transaction.py */
    PyObject *nesting = MANAGER(manager, NESTING);
    return nesting && PyLong_CheckExact(nesting) && PyLong_AsLong(nesting) < NESTING_MAX;
}

/* Whether a change of a row is nothing but that, and may be made. */
int space_is_usual(PyObject *space)
{
    PyObject *manager = space_manager(space);
    return manager && may_nest(manager) && MANAGER(manager, READ_ONLY) == Py_False && MANAGER(manager, INTERACTIVE) == Py_None
        && SPACE(space, ATTACHED) == Py_None && SPACE(space, SYSTEM_HOOK) == Py_None
        && is_empty_tuple(SPACE(space, MULTIKEYS)) && is_empty_tuple(functions_of(SPACE(space, BEFORE_REPLACE)))
        && space_triggers(space);
}

static PyObject *format_slot(PyObject *format, int slot)
{
    return format && Py_TYPE(format) == format_type ? get_slot(format, format_slots + slot) : NULL;
}

PyObject *format_names(PyObject *format)
{
    PyObject *names = format_slot(format, NAMES);
    return names && PyDict_CheckExact(names) ? names : NULL;
}

PyObject *format_packed_names(PyObject *format)
{
    PyObject *names = format_slot(format, PACKED_NAMES);
    return names && PyTuple_CheckExact(names) ? names : NULL;
}

int space_row_fits(PyObject *space, PyObject *row)
{
    PyObject *check = format_slot(SPACE(space, FORMAT), CHECK);
    if (!check || Py_TYPE(check) != &RowCheck_Type)
        return 0;
    if (packed_row_fits(check, ((RawObject *)row)->raw, 0))
        return 1;
    PyObject *fields = tuple_fields((TupleObject *)row);
    return fields ? row_fits(check, fields) : -1;
}

const RowFormat *space_row_format(PyObject *space)
{
    PyObject *check = format_slot(SPACE(space, FORMAT), CHECK);
    return check && Py_TYPE(check) == &RowCheck_Type ? row_check_format(check) : NULL;
}

int space_packed_row_fits(PyObject *space, PyObject *row)
{
    PyObject *check = format_slot(SPACE(space, FORMAT), CHECK);
    return check && Py_TYPE(check) == &RowCheck_Type && packed_row_fits(check, row, 1);
}

/* -- requests -- */

PyObject *space_fitting_row_key(PyObject *space, Quick *primary, PyObject *row)
{
    if (space_row_fits(space, row) <= 0)
        return NULL;
    PyObject *key = tree_object_row_key(primary->tree, ((RawObject *)row)->raw);
    if (key || PyErr_Occurred())
        return key;
    PyObject *fields = tuple_fields((TupleObject *)row);
    return fields ? row_key(primary->key_of, fields, NULL) : NULL;
}

static int store(PyObject *space, Quick *primary, PyObject *key, PyObject *row, int is_insert)
{
    if (is_insert)
        return tree_object_has(primary->tree, key)
            ? 0 : space_change(space, key, Py_None, row, SPACE(space, SECONDARIES));
    PyObject *present = tree_object_get(primary->tree, key);
    if (!present && PyErr_Occurred())
        return -1;
    PyObject *old = present ? stored_tuple(present, SPACE(space, FORMAT)) : Py_NewRef(Py_None);
    int done = old ? space_change(space, key, old, row, SPACE(space, SECONDARIES)) : -1;
    Py_XDECREF(old);
    Py_XDECREF(present);
    return done;
}

PyObject *space_store(PyObject *space, PyObject *row, int is_insert)
{
    if (!space_is_usual(space) || Py_TYPE(row) != &Tuple_Type)
        return NULL;
    PyObject *primary = SPACE(space, PRIMARY), *stored = NULL, *key = NULL;
    Quick *quick = primary ? quick_of(primary) : NULL;
    Py_XINCREF(quick);
    if (quick && (key = space_fitting_row_key(space, quick, row)) && store(space, quick, key, row, is_insert) > 0)
        stored = Py_NewRef(row);
    Py_XDECREF(key);
    Py_XDECREF(quick);
    return stored;
}

PyObject *space_delete(PyObject *space, PyObject *index_id, const Key *key)
{
    PyObject *primary_key, *row, *old = NULL;
    if (!space_is_usual(space) || space_locate(space, index_id, key, &primary_key, &row) <= 0)
        return NULL;
    if (!row)
        old = Py_NewRef(Py_None);
    else if ((old = stored_tuple(row, SPACE(space, FORMAT)))
             && space_change(space, primary_key, old, Py_None, SPACE(space, SECONDARIES)) <= 0)
        Py_CLEAR(old);
    Py_XDECREF(primary_key);
    Py_XDECREF(row);
    return old;
}

/* -- methods -- */

static int prepare(PyTypeObject *type)
{
    static const char *const transaction = "iproto_server.box.txn.transaction";
    if (stored_space_type == type)
        return 0;
    if (prepare_changes() < 0 || prepare_statements() < 0 || prepare_updates() < 0
        || find_slots((PyObject *)type, space_slots, SPACE_SLOTS) < 0
        || !(manager_type = find_class(transaction, "TransactionManager", manager_slots, MANAGER_SLOTS))
        || !(format_type = find_class("iproto_server.box.tuple.format", "Format", format_slots, FORMAT_SLOTS))
        || !(list_type = find_class("iproto_server.box.txn.trigger", "TriggerList", &list_functions, 1)))
        return -1;
    stored_space_type = (PyTypeObject *)Py_NewRef(type);
    return 0;
}

enum { INSERT, REPLACE, UPDATE, UPSERT, DELETE, CHANGE, METHODS };
static Method methods[METHODS];

METHOD_FUNCTION(method_insert)
{
    ANSWER(count == 1 && !names ? space_store(self, args[0], 1) : NULL, methods[INSERT]);
}

METHOD_FUNCTION(method_replace)
{
    ANSWER(count == 1 && !names ? space_store(self, args[0], 0) : NULL, methods[REPLACE]);
}

/* update(index_id, key, operations) */
METHOD_FUNCTION(method_update)
{
    int is_known = count == 3 && !names && PyList_CheckExact(args[1]);
    ANSWER(is_known ? space_update(self, args[0], KEY_OF_LIST(args[1]), args[2]) : NULL, methods[UPDATE]);
}

/* upsert(row, operations) */
METHOD_FUNCTION(method_upsert)
{
    ANSWER(count == 2 && !names ? space_upsert(self, args[0], args[1]) : NULL, methods[UPSERT]);
}

/* delete(index_id, key) */
METHOD_FUNCTION(method_delete)
{
    int is_known = count == 2 && !names && PyList_CheckExact(args[1]);
    ANSWER(is_known ? space_delete(self, args[0], KEY_OF_LIST(args[1])) : NULL, methods[DELETE]);
}

static int is_tuple_or_none(PyObject *row)
{
    return row == Py_None || Py_TYPE(row) == &Tuple_Type;
}

/* _change(key, old, new, operation, secondaries) */
METHOD_FUNCTION(method_change)
{
    int is_known = count == 5 && !names && PyBytes_CheckExact(args[0]) && is_tuple_or_none(args[1])
        && is_tuple_or_none(args[2]) && space_is_usual(self);
    int done = is_known ? space_change(self, args[0], args[1], args[2], args[4]) : 0;
    ANSWER(done > 0 ? Py_NewRef(Py_None) : NULL, methods[CHANGE]);
}

static Method methods[METHODS] = {
    METHOD_ENTRY("insert", method_insert, "insert($self, row, /)\n--\n\nStore a new row and answer it."),
    METHOD_ENTRY("replace", method_replace, "replace($self, row, /)\n--\n\nStore a row in the place of another."),
    METHOD_ENTRY("update", method_update, "update($self, index_id, key, operations, /)\n--\n\nChange a row."),
    METHOD_ENTRY("upsert", method_upsert, "upsert($self, row, operations, /)\n--\n\nStore or change a row."),
    METHOD_ENTRY("delete", method_delete, "delete($self, index_id, key, /)\n--\n\nRemove a row and answer it."),
    METHOD_ENTRY("_change", method_change, "Change one row, report it, and run the triggers."),
};

MethodTable stored_space_methods = {"MemtxSpace", prepare, methods, METHODS};
