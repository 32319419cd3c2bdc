/* CALL of plain procedures on the fast path. The dispatcher of Python answers exceptions and calls that wait. */
#include "../native.h"

#define ARGUMENTS_MAX 8

enum { NAME_RAISED, NAME_FAILED, NAME_WAIT, NAMES };
static PyObject *names[NAMES];

int prepare_calls(void)
{
    static const char *const texts[NAMES] = {"raised", "failed", "wait"};
    for (int place = 0; place < NAMES; place++)
        if (!names[place] && !(names[place] = PyUnicode_InternFromString(texts[place])))
            return -1;
    return 0;
}

/* Find the name and the arguments in the body of a CALL that has nothing else; the name is a new reference. */
static int split_call(Position at, Position end, PyObject **name, Span *arguments)
{
    *name = NULL;
    arguments->at = NULL;
    int fits = at < end && *at++ == 0x82;
    for (int pair = 0; fits && pair < 2; pair++) {
        uint8_t key = at < end ? *at++ : 0;
        if (key == BODY_FUNCTION_NAME && !*name)
            fits = (*name = read_procedure_name(&at, end)) != NULL;
        else if (key == BODY_TUPLE && !arguments->at) {
            arguments->at = at;
            fits = skip_value(&at, end, 1);
            arguments->end = at;
        } else
            fits = 0;
    }
    if (fits && at == end && PyUnicode_CheckExact(*name))
        return 1;
    Py_CLEAR(*name);
    return 0;
}

/* The arguments, a new list, of which some stay packed; NULL, maybe without an exception, if they are no array. */
static PyObject *read_arguments(Span arguments, unsigned int packed)
{
    uint32_t count;
    if (!packed) {
        PyObject *values = read_value(&arguments.at, arguments.end, 1);
        if (values && !PyList_CheckExact(values))
            Py_CLEAR(values);
        return values;
    }
    Position at = msgpack_array(arguments.at, arguments.end, &count);
    PyObject *values = at ? PyList_New((Py_ssize_t)count) : NULL;
    for (uint32_t number = 0; values && number < count; number++) {
        Position start = at;
        int is_packed = number < 32 && packed >> number & 1;
        PyObject *value = !is_packed ? read_value(&at, arguments.end, 2)
            : skip_value(&at, arguments.end, 2) ? new_raw(start, at) : NULL;
        if (value)
            PyList_SET_ITEM(values, (Py_ssize_t)number, value);
        else
            Py_CLEAR(values);
    }
    return values;
}

static PyObject *call_function(FastPath *self, PyObject *function, PyObject *arguments)
{
    Py_ssize_t count = PyList_GET_SIZE(arguments);
    PyObject *few[2 + ARGUMENTS_MAX], **all = few;
    if (count > ARGUMENTS_MAX && !(all = PyMem_New(PyObject *, (size_t)count + 2)))
        return PyErr_NoMemory();
    all[1] = self->box;
    for (Py_ssize_t place = 0; place < count; place++)
        all[2 + place] = PyList_GET_ITEM(arguments, place);
    size_t flags = (size_t)(count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    PyObject *result = PyObject_Vectorcall(function, all + 1, flags, NULL);
    if (all != few)
        PyMem_Free(all);
    return result;
}

/* Call a procedure, mostly as one transaction. Returns NULL with an exception. */
static PyObject *run(FastPath *self, const ProcedureObject *procedure, PyObject *arguments)
{
    ManagerObject *manager = (ManagerObject *)self->manager;
    if (procedure->is_autonomous)
        return call_function(self, procedure->function, arguments);
    if (manager_begin(manager) < 0)
        return NULL;
    PyObject *result = call_function(self, procedure->function, arguments);
    if (result) {
        if (manager_commit(manager) < 0)
            Py_CLEAR(result);
        return result;
    }
    manager_rollback(manager);
    return NULL;
}

/* The exception that was raised, whichever it is: all are answered. A new reference. */
static PyObject *take_error(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback)
        PyException_SetTraceback(value, traceback);
    Py_DECREF(type);
    Py_XDECREF(traceback);
    return value;
}

/* What Python answers to a call that has raised. */
static PyObject *raised(FastPath *self, uint64_t sync, ProcedureObject *procedure, PyObject *arguments)
{
    PyObject *error = take_error(), *number = error ? PyLong_FromUnsignedLongLong(sync) : NULL, *response = NULL;
    if (number) {
        PyObject *args[] = {self->dispatcher, number, (PyObject *)procedure, arguments, error};
        response = PyObject_VectorcallMethod(names[NAME_RAISED], args, 5, NULL);
    }
    Py_XDECREF(number);
    Py_XDECREF(error);
    return response;
}

PyObject *failed(FastPath *self, uint64_t sync, const char *who)
{
    PyObject *error = take_error(), *name = error ? PyUnicode_FromString(who) : NULL, *response = NULL;
    PyObject *number = name ? PyLong_FromUnsignedLongLong(sync) : NULL;
    if (number) {
        PyObject *args[] = {self->dispatcher, number, error, name};
        response = PyObject_VectorcallMethod(names[NAME_FAILED], args, 4, NULL);
    }
    Py_XDECREF(number);
    Py_XDECREF(name);
    Py_XDECREF(error);
    return response;
}

/* Write the response with a result. Returns 1; -1 with an exception. */
static int write_answer(Response *response, PyObject *connection, uint64_t sync, uint32_t version, PyObject *result)
{
    Buffer *buffer = response_begin(response, connection);
    int done = buffer ? write_result(buffer, sync, version, result) : -1;
    if (done <= 0 && buffer)
        response_drop(response);
    if (done)
        return done;
    PyObject *values = pack_values(result);
    buffer = values ? response_begin(response, connection) : NULL;
    done = buffer && write_rows(buffer, sync, version, ((PyListObject *)values)->ob_item, PyList_GET_SIZE(values)) == 0;
    if (!done && buffer)
        response_drop(response);
    Py_XDECREF(values);
    return done ? 1 : -1;
}

/* Answer with a result. */
static PyObject *answer(FastPath *self, PyObject *connection, uint64_t sync, PyObject *result)
{
    Response response;
    if (write_answer(&response, connection, sync, schema_version(self), result) > 0) {
        end_request(self);
        return response_send(&response, self->manager);
    }
    PyObject *refusal = failed(self, sync, "a request");
    end_request(self);
    return reply(connection, self->manager, refusal);
}

/* Let Python answer a call when its waiter is done. */
static PyObject *wait_for(FastPath *self, PyObject *connection, uint64_t sync, PyObject *waiter)
{
    PyObject *number = PyLong_FromUnsignedLongLong(sync);
    PyObject *args[] = {self->dispatcher, connection, number, waiter};
    PyObject *done = number ? PyObject_VectorcallMethod(names[NAME_WAIT], args, 4, NULL) : NULL;
    Py_XDECREF(number);
    return done;
}

/* Carry out a call. Takes over nothing; returns None, or NULL with an exception. */
static PyObject *carry_out(FastPath *self, PyObject *connection, SessionObject *session, uint64_t sync,
                           ProcedureObject *procedure, PyObject *arguments)
{
    begin_request(self, session, sync);
    self->counts[REQUEST_CALL]++;
    PyObject *result = run(self, procedure, arguments), *done;
    if (result && PyObject_TypeCheck(result, &PendingResult_Type)) {
        end_request(self);
        done = wait_for(self, connection, sync, result);
        Py_DECREF(result);
        return done;
    }
    if (result) {
        done = answer(self, connection, sync, result);
        Py_DECREF(result);
        return done;
    }
    PyObject *response = raised(self, sync, procedure, arguments);
    end_request(self);
    return reply(connection, self->manager, response);
}

/* Setuid functions are left to Python. */
static int is_setuid(FastPath *self, PyObject *name)
{
    return PyDict_GET_SIZE(self->setuid) && PyDict_Contains(self->setuid, name);
}

int handle_call(FastPath *self, PyObject *connection, uint64_t sync, Position at, Position end)
{
    PyObject *name, *arguments = NULL, *done = NULL;
    Span packed;
    SessionObject *session = session_of(self, connection);
    ProcedureObject *procedure = NULL;
    if (!session || !may_everything(session, PRIVILEGE_EXECUTE) || !split_call(at, end, &name, &packed))
        return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(session);
    if (!is_setuid(self, name) && (procedure = find_procedure(self->procedures, name))
        && (arguments = read_arguments(packed, procedure->packed)))
        done = carry_out(self, connection, session, sync, procedure, arguments);
    Py_DECREF(session);
    Py_XDECREF(procedure);
    Py_DECREF(name);
    Py_XDECREF(arguments);
    Py_XDECREF(done);
    return done ? LOOK_AT_TIME : PyErr_Occurred() ? -1 : 0;
}
