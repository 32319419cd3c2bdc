/* One change of one row: made in all indexes, reported to the transaction, told to the triggers; the twin of
 * MemtxSpace._change. The space is known to be one that spaces.c calls usual.
 */
#include "../native.h"

#include "../../engine/core/budget.h"

static PyTypeObject *statement_type, *savepoint_type;
static PyObject *rollback_name, *take_back_name;

/* -- triggers -- */

/* A moment of the running transaction, as numbers. */
typedef struct {
    Py_ssize_t statements, on_commit, on_rollback;
    long nesting;
} Moment;

static Py_ssize_t length(PyObject *list)
{
    return list && PyList_CheckExact(list) ? PyList_GET_SIZE(list) : 0;
}

static Moment this_moment(PyObject *manager, PyObject *statements)
{
    return (Moment){PyList_GET_SIZE(statements), length(MANAGER(manager, ON_COMMIT)),
                    length(MANAGER(manager, ON_ROLLBACK)), PyLong_AsLong(MANAGER(manager, NESTING))};
}

/* A trigger has raised: Python takes the change back. */
static void take_back(PyObject *manager, PyObject *statements, const Moment *moment, PyObject *functions,
                      Py_ssize_t number)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyObject *savepoint = PyObject_CallFunction((PyObject *)savepoint_type, "Onnnl", statements, moment->statements,
                                                moment->on_commit, moment->on_rollback, moment->nesting);
    PyObject *ran = savepoint ? PyTuple_GetSlice(functions, 0, number) : NULL;
    if (ran) {
        PyErr_Restore(type, error, traceback);
        PyObject *args[] = {manager, savepoint, ran};
        call_handling(take_back_name, args, 3);
    } else {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    }
    Py_XDECREF(ran);
    Py_XDECREF(savepoint);
}

static int set_nesting(PyObject *manager, long nesting)
{
    PyObject *number = PyLong_FromLong(nesting); /* a small one, of which there is no second */
    if (!number)
        return -1;
    set_slot(manager, manager_slots + MANAGER_NESTING, number);
    Py_DECREF(number);
    return 0;
}

/* Triggers look at few fields of a row, mostly. */
static void let_peek(PyObject *row)
{
    if (row != Py_None)
        ((TupleObject *)row)->peeks = PEEKS_MAX;
}

static int run_triggers(PyObject *space, PyObject *manager, PyObject *statements, PyObject *old, PyObject *new)
{
    PyObject *functions = space_triggers(space);
    if (!functions || !PyTuple_GET_SIZE(functions))
        return 0;
    Moment moment = this_moment(manager, statements);
    if (set_nesting(manager, moment.nesting + 1) < 0)
        return -1;
    Py_INCREF(functions);
    let_peek(old);
    let_peek(new);
    PyObject *args[] = {NULL, old, new};
    int failed = 0;
    for (Py_ssize_t number = 0; !failed && number < PyTuple_GET_SIZE(functions); number++) {
        PyObject *trigger = PyTuple_GET_ITEM(functions, number);
        PyObject *done = PyObject_Vectorcall(trigger, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        Py_XDECREF(done);
        if (!done) {
            take_back(manager, statements, &moment, functions, number);
            failed = -1;
        }
    }
    set_nesting(manager, moment.nesting);
    Py_DECREF(functions);
    return failed;
}

/* -- the change of a row -- */

static PyObject *new_statement(PyObject *space, PyObject *key, PyObject *old, PyObject *new, PyObject *primary)
{
    PyObject *statement = statement_type->tp_alloc(statement_type, 6);
    PyObject *parts[] = {space, key, old, new, primary, Py_None};
    for (int place = 0; statement && place < 6; place++)
        PyTuple_SET_ITEM(statement, place, Py_NewRef(parts[place]));
    return statement;
}

static Py_ssize_t size_of(PyObject *row)
{
    return row == Py_None ? 0 : PyBytes_GET_SIZE(row);
}

static PyObject *row_of(PyObject *tuple)
{
    return tuple == Py_None ? Py_None : ((RawObject *)tuple)->raw;
}

static PyObject *fields_of(PyObject *tuple)
{
    return tuple == Py_None ? Py_None : tuple_fields((TupleObject *)tuple);
}

static PyObject *change_decoded(Quick *quick, PyObject *secondaries, PyObject *key, PyObject *old, PyObject *new)
{
    PyObject *old_fields = Py_None, *new_fields = Py_None;
    if (PyTuple_GET_SIZE(secondaries) && (!(old_fields = fields_of(old)) || !(new_fields = fields_of(new))))
        return NULL;
    return change_entries(quick, secondaries, key, old_fields, new_fields, row_of(new));
}

/* Whether there is memory for a change; where there is none, Python refuses the change.
 *
 * `has_pairs`: whether keys may be kept that are not made from the row. Then they may need a page, and as much as the
 * row for each index. */
static int is_affordable(PyObject *old, PyObject *new, PyObject *secondaries, int has_pairs)
{
    if (budget.limit == BUDGET_UNLIMITED || new == Py_None)
        return 1;
    size_t old_size = (size_t)size_of(row_of(old)), size = (size_t)size_of(row_of(new));
    size_t entries = (size_t)PyTuple_GET_SIZE(secondaries) + !old_size;
    size_t more = has_pairs && size > old_size ? BUDGET_SPARE + 2 * size * entries : 0;
    return budget_allows(old_size, size, entries, more, 0);
}

/* Change all indexes, and report it. Returns 1; 0 unknown, nothing has changed; -1 with an exception. */
static int change_and_report(PyObject *space, PyObject *statements, PyObject *primary, Quick *quick, PyObject *key,
                             PyObject *old, PyObject *new, PyObject *secondaries)
{
    if (!is_affordable(old, new, secondaries, 0))
        return 0;
    Py_ssize_t size = PyLong_AsSsize_t(SPACE(space, BSIZE));
    if (size == -1 && PyErr_Occurred())
        return -1;
    PyObject *bsize = PyLong_FromSsize_t(size + size_of(row_of(new)) - size_of(row_of(old)));
    PyObject *statement = bsize ? new_statement(space, key, row_of(old), row_of(new), primary) : NULL;
    /* Reported first: when the change is made, nothing may fail any more. */
    int is_reported = statement && PyList_Append(statements, statement) == 0;
    PyObject *refusing = is_reported ? change_packed(quick, secondaries, key, row_of(new)) : NULL;
    if (is_reported && !refusing && !PyErr_Occurred() && is_affordable(old, new, secondaries, 1))
        refusing = change_decoded(quick, secondaries, key, old, new);
    int done = refusing == Py_None ? 1 : PyErr_Occurred() ? -1 : 0;
    if (done > 0)
        set_slot(space, space_slots + SPACE_BSIZE, bsize);
    else if (is_reported)
        PyList_SetSlice(statements, PyList_GET_SIZE(statements) - 1, PyList_GET_SIZE(statements), NULL);
    Py_XDECREF(refusing);
    Py_XDECREF(statement);
    Py_XDECREF(bsize);
    return done;
}

/* The same, and run the triggers, in the running transaction. */
static int change_inside(PyObject *space, PyObject *manager, PyObject *statements, PyObject *key, PyObject *old,
                         PyObject *new, PyObject *secondaries)
{
    PyObject *primary = SPACE(space, PRIMARY);
    Quick *quick = primary ? quick_of(primary) : NULL;
    if (!quick)
        return 0;
    Py_INCREF(statements);
    Py_INCREF(primary);
    Py_INCREF(quick);
    int done = change_and_report(space, statements, primary, quick, key, old, new, secondaries);
    if (done > 0 && run_triggers(space, manager, statements, old, new) < 0)
        done = -1;
    Py_DECREF(quick);
    Py_DECREF(primary);
    Py_DECREF(statements);
    return done;
}

static int call_plainly(PyObject *self, PyObject *name)
{
    PyObject *done = PyObject_CallMethodNoArgs(self, name);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* The same in a transaction of its own. */
static int change_alone(PyObject *space, PyObject *manager, PyObject *key, PyObject *old, PyObject *new,
                        PyObject *secondaries)
{
    PyObject *statements = PyList_New(0);
    if (!statements)
        return -1;
    set_slot(manager, manager_slots + MANAGER_STATEMENTS, statements);
    int done = change_inside(space, manager, statements, key, old, new, secondaries);
    Py_DECREF(statements);
    if (done > 0)
        return commit(manager) < 0 ? -1 : 1;
    if (done < 0)
        roll_back(manager);
    else if (call_plainly(manager, rollback_name) < 0)
        return -1;
    return done;
}

/* The same, in the running transaction or in one of its own. */
int space_change(PyObject *space, PyObject *key, PyObject *old, PyObject *new, PyObject *secondaries)
{
    PyObject *manager = space_manager(space), *statements = MANAGER(manager, STATEMENTS);
    int is_alone = statements == Py_None && MANAGER(manager, TAKE_OUT) == Py_None, done;
    if (!statements || !(is_alone || PyList_CheckExact(statements)))
        return 0;
    if (!secondaries || !PyTuple_CheckExact(secondaries))
        return 0;
    if (ensure_stack() < 0)
        return -1;
    Py_INCREF(manager);
    Py_INCREF(secondaries);
    if (is_alone)
        done = change_alone(space, manager, key, old, new, secondaries);
    else
        done = change_inside(space, manager, statements, key, old, new, secondaries);
    Py_DECREF(secondaries);
    Py_DECREF(manager);
    return done;
}

int prepare_statements(void)
{
    if ((rollback_name = PyUnicode_InternFromString("rollback"))
        && (take_back_name = PyUnicode_InternFromString("take_back"))
        && (statement_type = find_class("iproto_server.box.txn.statement", "Statement", NULL, 0))
        && (savepoint_type = find_class("iproto_server.box.txn.statement", "Savepoint", NULL, 0)))
        return 0;
    return -1;
}
