/* What the engine asks of Python for a change: sequences, checks that need Python, triggers, the tracker of an interactive
 * transaction, and the effects of system rows.
 */
#include "../native.h"

static SpaceObject *object_of(const Space *space)
{
    return space->context;
}

static ChangeCall *call_of(const Change *change)
{
    return change->context;
}

static int succeeded(PyObject *done)
{
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static const char *const operation_texts[CHANGE_UPSERT + 1] = {
    [CHANGE_INSERT] = "INSERT", [CHANGE_REPLACE] = "REPLACE", [CHANGE_UPDATE] = "UPDATE",
    [CHANGE_DELETE] = "DELETE", [CHANGE_UPSERT] = "UPSERT",
};

static PyObject *operation_name(ChangeKind kind)
{
    static PyObject *names[CHANGE_UPSERT + 1];
    if (!names[kind])
        names[kind] = PyUnicode_InternFromString(operation_texts[kind]);
    return names[kind];
}

/* -- rows as Tuples -- */

static PyObject *new_row(const Space *space, const RowRef *row)
{
    if (!row->data)
        Py_RETURN_NONE;
    PyObject *raw = PyBytes_FromStringAndSize((const char *)row->data, (Py_ssize_t)row->size);
    PyObject *made = raw ? stored_tuple(raw, object_of(space)->format) : NULL;
    Py_XDECREF(raw);
    return made;
}

static PyObject *row_of(const Change *change, const RowRef *row, PyObject **place)
{
    if (!*place)
        *place = new_row(change->space, row);
    return *place;
}

PyObject *call_row(Change *change)
{
    ChangeCall *call = call_of(change);
    if (call->made != change->made) { /* operations have made another row meanwhile */
        call->made = change->made;
        Py_CLEAR(call->row);
    }
    return row_of(change, &change->row, &call_of(change)->row);
}

PyObject *call_old(Change *change)
{
    return row_of(change, &change->old, &call_of(change)->old);
}

void change_call_free(ChangeCall *call)
{
    Py_CLEAR(call->row);
    Py_CLEAR(call->old);
    Py_CLEAR(call->operations);
    Py_CLEAR(call->ran);
}

/* Have the change store another row, a Tuple; None for no row. */
static void set_row(Change *change, PyObject *row)
{
    ChangeCall *call = call_of(change);
    Py_XSETREF(call->row, Py_NewRef(row));
    change->space->hooks->forget(&change->row);
    change->row = (RowRef){NULL, 0, NULL};
    if (row == Py_None)
        return;
    PyObject *raw = ((RawObject *)row)->raw;
    change->row.data = (const uint8_t *)PyBytes_AS_STRING(raw);
    change->row.size = (size_t)PyBytes_GET_SIZE(raw);
    change->is_whole = 0;
}

/* The fields of a row, a list; NULL with an exception; None for no row. */
static PyObject *fields_of(PyObject *row)
{
    return row == Py_None ? Py_NewRef(Py_None) : row ? Py_XNewRef(tuple_fields((TupleObject *)row)) : NULL;
}

static int check_tuple(PyObject *row)
{
    if (Py_TYPE(row) == &Tuple_Type || row == Py_None)
        return 0;
    PyErr_Format(PyExc_TypeError, "a row is a Tuple, not %.100s", Py_TYPE(row)->tp_name);
    return -1;
}

/* -- before the change -- */

static int fill(Space *space, Change *change)
{
    PyObject *row = call_row(change);
    PyObject *filled = row ? PyObject_CallMethod(object_of(space)->attached, "fill", "(O)", row) : NULL;
    if (!filled || check_tuple(filled) < 0) {
        Py_XDECREF(filled);
        return -1;
    }
    if (filled != row)
        set_row(change, filled);
    Py_DECREF(filled);
    return 0;
}

static int explain(Space *space, Change *change)
{
    PyObject *fields = fields_of(call_row(change));
    PyObject *done = fields ? PyObject_CallOneArg(object_of(space)->check, fields) : NULL;
    if (done && !change->row.decoded)
        change->row.decoded = Py_NewRef(fields);
    Py_XDECREF(fields);
    return succeeded(done);
}

static int decide(Space *space, Change *change)
{
    PyObject *old = call_old(change), *new = old ? call_row(change) : NULL;
    PyObject *chosen = new ? PyObject_CallMethod((PyObject *)object_of(space), "_choose", "OO", old, new) : NULL;
    if (!chosen || check_tuple(chosen) < 0) {
        Py_XDECREF(chosen);
        return -1;
    }
    int goes_on = chosen != old;
    call_of(change)->is_kept = !goes_on;
    if (chosen != new)
        set_row(change, chosen);
    Py_DECREF(chosen);
    return goes_on;
}

/* The operations as Python's Operations, borrowed. */
static PyObject *operations_of(Space *space, Change *change)
{
    ChangeCall *call = call_of(change);
    PyObject *object = space->context;
    if (call->operations)
        return call->operations;
    const PackedOperations *packed = call->packed;
    if (!packed)
        return call->operations = PyObject_CallMethod(object, "parse_operations", "(O)", call->given);
    call->operations = PyObject_CallMethod(object, "parse_packed", "y#k", (const char *)packed->at,
                                           (Py_ssize_t)(packed->end - packed->at), (unsigned long)packed->index_base);
    return call->operations;
}

static int apply(Space *space, Change *change, int is_upsert)
{
    ChangeCall *call = call_of(change);
    if (call->packed && change->old.data) {
        int done = apply_in_parts(object_of(space), change, call->packed);
        if (done)
            return done < 0 ? -1 : 0;
    }
    PyObject *operations = operations_of(space, change);
    if (!operations)
        return -1;
    if (!change->old.data)
        return succeeded(PyObject_CallMethod(operations, "check", NULL));
    PyObject *old = call_old(change);
    PyObject *row = old ? PyObject_CallMethod((PyObject *)object_of(space), is_upsert ? "_apply_upsert" : "_apply_update",
                                              "OO", operations, old) : NULL;
    if (!row || check_tuple(row) < 0) {
        Py_XDECREF(row);
        return -1;
    }
    set_row(change, row);
    change->is_whole = 1;
    Py_DECREF(row);
    return 0;
}

static int refuse_memory(Space *space, Change *change)
{
    if (call_of(change)->is_exempt)
        return 0;
    return succeeded(PyObject_CallMethod((PyObject *)object_of(space), "_refuse_memory", "n", (Py_ssize_t)change->row.size));
}

/* -- the tracker -- */

static PyObject *key_bytes(const Change *change)
{
    const uint8_t *key = change->key.data ? change->key.data : change->key.first;
    return PyBytes_FromStringAndSize((const char *)key, (Py_ssize_t)change->key.size);
}

static int reads(Space *space, Change *change)
{
    PyObject *key = key_bytes(change);
    PyObject *done = key ? PyObject_CallMethod(object_of(space)->manager->interactive, "read_key", "OiO", object_of(space), 0,
                                               key) : NULL;
    Py_XDECREF(key);
    return succeeded(done);
}

static int changes(Space *space, Change *change)
{
    PyObject *key = key_bytes(change), *row = key ? call_row(change) : NULL;
    PyObject *done = row ? PyObject_CallMethod(object_of(space)->manager->interactive, "change", "OOOO", object_of(space), key,
                                               row, operation_name(change->kind)) : NULL;
    Py_XDECREF(key);
    return succeeded(done);
}

/* -- after the change -- */

static int take_effect(Space *space, Change *change, Statement *statement)
{
    PyObject *old = call_old(change), *new = old ? call_row(change) : NULL;
    PyObject *effect = new ? PyObject_CallMethod((PyObject *)object_of(space), "_take_effect", "OOO", old, new,
                                                 operation_name(change->kind)) : NULL;
    if (!effect)
        return -1;
    if (effect == Py_None) {
        Py_DECREF(effect);
        return 0;
    }
    PyObject *is_local = PyObject_GetAttrString(effect, "is_local");
    if (!is_local && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    statement->is_local = is_local == Py_True;
    Py_XDECREF(is_local);
    statement->effect = effect;
    return 0;
}

/* Triggers look at few fields of a row, mostly. */
static void let_peek(PyObject *row)
{
    if (row != Py_None)
        ((TupleObject *)row)->peeks = PEEKS_MAX;
}

/* Call a trigger of Python with Tuples, or one of Lua with rows as they are, the space's name and the operation. */
static int notify(Space *space, Change *change, PyObject *trigger)
{
    if (Py_TYPE(trigger) == &LuaFunction_Type)
        return lua_notify(trigger, object_of(space), &change->old, &change->row, operation_texts[change->kind]);
    PyObject *old = call_old(change), *new = old ? call_row(change) : NULL;
    if (!new)
        return -1;
    let_peek(old);
    let_peek(new);
    PyObject *args[] = {NULL, old, new};
    return succeeded(PyObject_Vectorcall(trigger, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL));
}

static int after(Space *space, Change *change)
{
    PyObject *functions = Py_NewRef(object_of(space)->on_replace->functions);
    Py_ssize_t number = 0;
    int failed = 0;
    for (; !failed && number < PyTuple_GET_SIZE(functions); number += !failed)
        failed = notify(space, change, PyTuple_GET_ITEM(functions, number)) < 0;
    if (failed) {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        Py_XSETREF(call_of(change)->ran, PyTuple_GetSlice(functions, 0, number));
        PyErr_Restore(type, error, traceback);
    }
    Py_DECREF(functions);
    return failed ? -1 : 0;
}

/* Notify the triggers that were notified of a change that it is undone. */
int space_undone(void *context, Statement *statement, Change *refused)
{
    SpaceObject *space = object_of(statement->space);
    PyObject *ran = refused && call_of(refused)->ran ? call_of(refused)->ran : space->on_replace->functions;
    if (!PyTuple_GET_SIZE(ran))
        return 0;
    PyObject *old = NULL, *new = NULL, *raw = record_row(statement->old);
    if (raw)
        old = raw == Py_None ? Py_NewRef(raw) : stored_tuple(raw, space->format);
    Py_XDECREF(raw);
    raw = old ? record_row(statement->made) : NULL;
    if (raw)
        new = raw == Py_None ? Py_NewRef(raw) : stored_tuple(raw, space->format);
    Py_XDECREF(raw);
    Py_INCREF(ran);
    int done = new ? succeeded(PyObject_CallMethod((PyObject *)space->on_replace, "undo", "OOO", ran, old, new)) : -1;
    Py_DECREF(ran);
    Py_XDECREF(old);
    Py_XDECREF(new);
    return done;
}

/* -- the rest -- */

static void forget(RowRef *row)
{
    row_ref_free(row);
}

static void retain(Space *space)
{
    Py_INCREF((PyObject *)space->context);
}

static void release(Space *space)
{
    Py_DECREF((PyObject *)space->context);
}

static void *retain_primary(Space *space)
{
    return Py_NewRef(object_of(space)->primary);
}

static void release_primary(void *owner)
{
    Py_DECREF((PyObject *)owner);
}

const SpaceHooks space_hooks = {
    .fill = fill,
    .explain = explain,
    .decide = decide,
    .apply = apply,
    .refuse_memory = refuse_memory,
    .reads = reads,
    .changes = changes,
    .take_effect = take_effect,
    .after = after,
    .forget = forget,
    .retain = retain,
    .release = release,
    .retain_primary = retain_primary,
    .release_primary = release_primary,
};
