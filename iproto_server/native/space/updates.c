/* Update operations: read from requests and from what procedures give, and applied to packed rows. */
#include "../native.h"

/* -- reading operations. Each returns 0, maybe with an exception, where Python has to do it -- */

static int field_of(void *names, const uint8_t *name, size_t size, int32_t *field_no)
{
    PyObject *text = PyUnicode_DecodeUTF8((const char *)name, (Py_ssize_t)size, "surrogateescape");
    PyObject *number = text ? PyDict_GetItemWithError(names, text) : NULL;
    Py_XDECREF(text);
    int overflow;
    long value = number && PyLong_CheckExact(number) ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
    if (value < 0 || value > INT32_MAX)
        return 0;
    *field_no = (int32_t)value;
    return 1;
}

int read_packed_operations(UpdateOperations *operations, const PackedOperations *packed)
{
    return update_read(operations, packed->at, packed->end, packed->index_base, packed->names ? field_of : NULL,
                       packed->names);
}

/* Read an Operations by the request that it was parsed from, which it keeps: (packed, names, index base). */
static int read_request(UpdateOperations *operations, PyObject *request)
{
    if (!PyTuple_CheckExact(request) || PyTuple_GET_SIZE(request) != 3)
        return 0;
    PyObject *raw = PyTuple_GET_ITEM(request, 0), *names = PyTuple_GET_ITEM(request, 1);
    PyObject *index_base = PyTuple_GET_ITEM(request, 2);
    if (!PyBytes_CheckExact(raw) || !PyDict_CheckExact(names) || !PyLong_CheckExact(index_base))
        return 0;
    Position at = (Position)PyBytes_AS_STRING(raw);
    uint32_t base = (uint32_t)PyLong_AsUnsignedLongMask(index_base);
    return read_packed_operations(operations, &(PackedOperations){at, at + PyBytes_GET_SIZE(raw), base, names});
}

int read_parsed_operations(UpdateOperations *operations, PyObject *parsed)
{
    PyObject *request = PyObject_GetAttrString(parsed, "request");
    int is_known = request ? read_request(operations, request) : 0;
    Py_XDECREF(request); /* the Operations keeps it */
    return is_known;
}

/* Whether operations are lists or tuples of values that are packed as one value each. */
static int is_list_of_operations(PyObject *given)
{
    if (!PyList_CheckExact(given) && !PyTuple_CheckExact(given))
        return 0;
    for (Py_ssize_t place = 0; place < PySequence_Fast_GET_SIZE(given); place++) {
        PyObject *operation = PySequence_Fast_GET_ITEM(given, place);
        if (!PyList_CheckExact(operation) && !PyTuple_CheckExact(operation))
            return 0;
        for (Py_ssize_t part = 0; part < PySequence_Fast_GET_SIZE(operation); part++)
            if (Py_TYPE(PySequence_Fast_GET_ITEM(operation, part)) == &Raw_Type)
                return 0;
    }
    return 1;
}

static int is_scalar(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    return type == &PyUnicode_Type || type == &PyLong_Type || value == Py_None || type == &PyBool_Type
        || type == &PyFloat_Type || type == &PyBytes_Type;
}

/* The number of a field that is given by its number from 0 or by its name; -1, maybe with an exception, for others. */
static long given_field(PyObject *field, PyObject *names)
{
    int overflow;
    PyObject *number = names && PyUnicode_CheckExact(field) ? PyDict_GetItemWithError(names, field) : field;
    return number && PyLong_CheckExact(number) ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
}

/* Read ("=", field, value), of a value without others in it. The value is appended to the buffer. */
static int read_assignment(UpdateOperation *operation, Buffer *buffer, PyObject *names, PyObject *given)
{
    if ((!PyTuple_CheckExact(given) && !PyList_CheckExact(given)) || PySequence_Fast_GET_SIZE(given) != 3)
        return 0;
    PyObject **parts = PySequence_Fast_ITEMS(given), *opcode = parts[0];
    if (!PyUnicode_CheckExact(opcode) || PyUnicode_GET_LENGTH(opcode) != 1 || PyUnicode_READ_CHAR(opcode, 0) != '='
        || !is_scalar(parts[2]))
        return 0;
    long field = given_field(parts[1], names);
    Py_ssize_t start = buffer->size;
    if (field < 0 || field > INT32_MAX || write_value(buffer, parts[2], 0) != 1)
        return 0;
    *operation = (UpdateOperation){.opcode = '=', .field_no = (int32_t)field};
    operation->argument = (MsgpackValue){.type = MSGPACK_OTHER, .size = (size_t)(buffer->size - start)};
    return 1;
}

/* Read operations that are assignments, as most of those of procedures are, without packing them first. */
static int read_assignments(UpdateOperations *operations, Buffer *buffer, PyObject *names, PyObject *given)
{
    if (!PyTuple_CheckExact(given) && !PyList_CheckExact(given))
        return 0;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(given);
    if (!count || count > UPDATE_OPERATIONS_MAX)
        return 0;
    for (Py_ssize_t place = 0; place < count; place++)
        if (!read_assignment(operations->all + place, buffer, names, PySequence_Fast_GET_ITEM(given, place)))
            return 0;
    const uint8_t *at = buffer->data; /* which stays where it is from here on */
    for (Py_ssize_t place = 0; place < count; at += operations->all[place++].argument.size)
        operations->all[place].argument.bytes = at;
    operations->count = (int)count;
    operations->is_plain = 1;
    return 1;
}

/* Read operations as procedures give them. They refer to the buffer. */
int read_given_operations(UpdateOperations *operations, Buffer *buffer, SpaceObject *space, PyObject *given)
{
    PyObject *names = space->names;
    if (read_assignments(operations, buffer, names, given))
        return 1;
    buffer->size = 0;
    if (PyErr_Occurred() || !is_list_of_operations(given) || write_value(buffer, given, 0) <= 0)
        return 0;
    PackedOperations packed = {buffer->data, buffer->data + buffer->size, 0, names};
    return read_packed_operations(operations, &packed);
}

/* -- the new row -- */

/* The fields of type `double` among the places that are, tuples of steps. Returns 0 where there is something else. */
static int find_doubles(PyObject *places, UpdateDoubles *doubles)
{
    *doubles = (UpdateDoubles){0, 0};
    if (!places || !PyFrozenSet_CheckExact(places))
        return 0;
    if (!PySet_GET_SIZE(places))
        return 1;
    PyObject *each = PyObject_GetIter(places), *place;
    while (each && (place = PyIter_Next(each))) {
        PyObject *step = PyTuple_CheckExact(place) && PyTuple_GET_SIZE(place) ? PyTuple_GET_ITEM(place, 0) : NULL;
        long field = step && PyLong_CheckExact(step) ? PyLong_AsLong(step) : -1;
        if (field >= 0 && field < 64 && PyTuple_GET_SIZE(place) == 1)
            doubles->first |= (uint64_t)1 << field;
        else if (field < 0 || field >= 64)
            doubles->has_more = 1;
        Py_DECREF(place);
    }
    Py_XDECREF(each);
    return !PyErr_Occurred();
}

static PyObject *written(const UpdatedRow *new)
{
    PyObject *raw = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)new->size);
    if (raw)
        update_write(new, (uint8_t *)PyBytes_AS_STRING(raw));
    return raw;
}

/* The packed new row; NULL, maybe without an exception. */
static PyObject *apply_to(UpdatedRow *new, const UpdateOperations *operations, PyObject *old, const UpdateDoubles *doubles)
{
    int is_known = update_row(new, operations, (Position)PyBytes_AS_STRING(old), (size_t)PyBytes_GET_SIZE(old), doubles);
    return is_known ? written(new) : NULL;
}

static PyObject *apply(UpdatedRow *new, const UpdateOperations *operations, PyObject *old, PyObject *places)
{
    UpdateDoubles doubles;
    return find_doubles(places, &doubles) ? apply_to(new, operations, old, &doubles) : NULL;
}

/* -- many operations -- */

/* Whether operations only replace, insert and delete fields: the others depend on what others have done to a field. */
static int are_simple(const UpdateOperations *operations)
{
    int place = 0;
    while (place < operations->count && strchr("=!#", operations->all[place].opcode))
        place++;
    return place == operations->count;
}

/* Apply operations to a packed row, part by part, but for the last ones, which are left in `operations`. Returns the row
 * to which these apply, a new reference; NULL, maybe without an exception. */
static PyObject *apply_first(UpdateOperations *operations, const PackedOperations *packed, PyObject *row,
                             const UpdateDoubles *doubles)
{
    uint32_t left, part = UPDATE_OPERATIONS_MAX;
    Position at = msgpack_array(packed->at, packed->end, &left);
    int is_plain = 1;
    row = at && left && left <= LARGEST_OPERATION_COUNT ? Py_NewRef(row) : NULL;
    while (row) {
        int is_read = update_read_next(operations, &at, packed->end, left < part ? left : part, packed->index_base,
                                       packed->names ? field_of : NULL, packed->names);
        if (!is_read || !are_simple(operations) || (left <= part && at != packed->end)) {
            Py_CLEAR(row);
            break;
        }
        operations->is_plain = is_plain &= operations->is_plain;
        if (left <= part)
            break;
        left -= part;
        UpdatedRow changed;
        Py_SETREF(row, apply_to(&changed, operations, row, doubles));
    }
    return row;
}

int apply_in_parts(SpaceObject *space, Change *change, const PackedOperations *packed)
{
    uint32_t count;
    if (!msgpack_array(packed->at, packed->end, &count) || count <= UPDATE_OPERATIONS_MAX)
        return 0;
    UpdateOperations last;
    UpdatedRow updated;
    PyObject *old = PyBytes_FromStringAndSize((const char *)change->old.data, (Py_ssize_t)change->old.size);
    PyObject *row = old ? apply_first(&last, packed, old, &space->core.doubles) : NULL;
    int done = row ? update_row(&updated, &last, (Position)PyBytes_AS_STRING(row), (size_t)PyBytes_GET_SIZE(row),
                                &space->core.doubles) : 0;
    if (done && !(change->made = malloc(updated.size))) {
        PyErr_NoMemory();
    } else if (done) {
        update_write(&updated, change->made);
        change->row = (RowRef){change->made, updated.size, NULL};
        change->made_size = updated.size;
        change->is_whole = (uint8_t)last.is_plain;
    }
    Py_XDECREF(row);
    Py_XDECREF(old);
    return PyErr_Occurred() ? -1 : done != 0;
}

/* -- functions -- */

static PyObject *or_none(PyObject *raw)
{
    return raw || PyErr_Occurred() ? raw : Py_NewRef(Py_None);
}

/* apply_request(request, raw, doubles): the new row; None where Python has to apply them */
FUNCTION(native_apply_request)
{
    if (count != 3 || !PyBytes_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "apply_request() takes operations, a row and the places of doubles");
        return NULL;
    }
    UpdateOperations operations;
    UpdatedRow new;
    return or_none(read_request(&operations, args[0]) ? apply(&new, &operations, args[1], args[2]) : NULL);
}
