/* UPDATE and UPSERT of a row by operations that the engine's core knows: the twin of MemtxSpace.update and
 * MemtxSpace.upsert, and of what applies operations to a row in box/update.
 */
#include "../native.h"

static PyTypeObject *operations_type;
enum { REQUEST, OPERATIONS_SLOTS };
enum { MANY_OPERATIONS = 4000 }; /* LARGEST_OPERATION_COUNT of box/update/operation.py */
static Slot operations_slots[OPERATIONS_SLOTS] = {{"request", 0}};

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
static int read_operations(UpdateOperations *operations, PyObject *parsed)
{
    PyObject *request = Py_TYPE(parsed) == operations_type ? get_slot(parsed, operations_slots + REQUEST) : NULL;
    if (!request || !PyTuple_CheckExact(request) || PyTuple_GET_SIZE(request) != 3)
        return 0;
    PyObject *raw = PyTuple_GET_ITEM(request, 0), *names = PyTuple_GET_ITEM(request, 1);
    PyObject *index_base = PyTuple_GET_ITEM(request, 2);
    if (!PyBytes_CheckExact(raw) || !PyDict_CheckExact(names) || !PyLong_CheckExact(index_base))
        return 0;
    Position at = (Position)PyBytes_AS_STRING(raw);
    uint32_t base = (uint32_t)PyLong_AsUnsignedLongMask(index_base);
    return read_packed_operations(operations, &(PackedOperations){at, at + PyBytes_GET_SIZE(raw), base, names});
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
    operations->problem = UPDATE_FINE;
    operations->problem_at = 0;
    return 1;
}

/* Read operations as procedures give them. They refer to the buffer. */
static int read_given(UpdateOperations *operations, Buffer *buffer, PyObject *space, PyObject *given)
{
    PyObject *names = format_names(SPACE(space, FORMAT));
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

int space_doubles(PyObject *space, UpdateDoubles *doubles)
{
    return find_doubles(SPACE(space, DOUBLES), doubles);
}

static PyObject *written(const UpdatedRow *new)
{
    PyObject *raw = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)new->size);
    if (raw)
        update_write(new, (uint8_t *)PyBytes_AS_STRING(raw));
    return raw;
}

/* The packed new row; NULL, maybe without an exception. */
static PyObject *apply(UpdatedRow *new, const UpdateOperations *operations, PyObject *old, PyObject *places)
{
    UpdateDoubles doubles;
    if (!find_doubles(places, &doubles)
        || !update_row(new, operations, (Position)PyBytes_AS_STRING(old), (size_t)PyBytes_GET_SIZE(old), &doubles))
        return NULL;
    return written(new);
}

/* Whether the new row is known to fit the format; and to be one that can be decoded, where operations have brought what
 * may be none. */
static int fits(PyObject *space, PyObject *row, int is_plain)
{
    if (is_plain)
        return space_packed_row_fits(space, ((RawObject *)row)->raw);
    return space_row_fits(space, row) > 0;
}

/* -- what it touches -- */

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

int update_keeps_key(PyObject *space, const UpdatedRow *new)
{
    PyObject *parts = SPACE(space, PRIMARY_FIELDS);
    int may_change = new->first_moved != UPDATE_NO_FIELD || !parts || !PyFrozenSet_CheckExact(parts);
    for (int place = 0; !may_change && place < new->touched_count; place++) {
        PyObject *number = PyLong_FromUnsignedLong(new->touched[place]);
        may_change = number ? PySet_Contains(parts, number) : -1;
        Py_XDECREF(number);
    }
    return !may_change;
}

/* The same of a key; no row is looked at whose key cannot be another one. */
static int keeps_key(PyObject *space, PyObject *key, PyObject *row, const UpdatedRow *new)
{
    return update_keeps_key(space, new) ? 1 : PyErr_Occurred() ? -1 : has_key(space, key, row);
}

/* The secondary indexes that have a part in a field, borrowed; NULL, maybe with an exception, if there is none. */
static PyObject *indexes_of(PyObject *by_field, uint32_t field)
{
    PyObject *number = PyLong_FromUnsignedLong(field);
    PyObject *found = number ? PyDict_GetItemWithError(by_field, number) : NULL;
    Py_XDECREF(number);
    return found && PyTuple_CheckExact(found) ? found : NULL;
}

/* Those of two tuples that are in either of them; takes the first one over. */
static PyObject *united(PyObject *one, PyObject *other)
{
    PyObject *list = PySequence_List(one);
    for (Py_ssize_t place = 0; list && place < PyTuple_GET_SIZE(other); place++) {
        PyObject *index = PyTuple_GET_ITEM(other, place);
        int is_there = 0;
        for (Py_ssize_t known = 0; !is_there && known < PyTuple_GET_SIZE(one); known++)
            is_there = PyTuple_GET_ITEM(one, known) == index;
        if (!is_there && PyList_Append(list, index) < 0)
            Py_CLEAR(list);
    }
    Py_DECREF(one);
    PyObject *both = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return both;
}

/* The secondary indexes whose entries may change, a new reference; NULL, maybe without an exception. */
PyObject *updated_indexes(PyObject *space, const UpdatedRow *new)
{
    PyObject *by_field = SPACE(space, BY_FIELD), *all = NULL;
    if (new->first_moved != UPDATE_NO_FIELD || !by_field || !PyDict_CheckExact(by_field))
        return Py_XNewRef(SPACE(space, SECONDARIES));
    for (int place = 0; place < new->touched_count; place++) {
        PyObject *found = indexes_of(by_field, new->touched[place]);
        if (found && found != all && !(all = all ? united(all, found) : Py_NewRef(found)))
            return NULL;
    }
    return all || PyErr_Occurred() ? all : PyTuple_New(0);
}

/* -- changes -- */

/* Put a row in the place of the one with its key. Returns 1; 0 unknown, nothing has changed; -1 with an exception. */
static int exchange(PyObject *space, PyObject *key, PyObject *old, PyObject *new, const UpdatedRow *updated,
                    int is_plain)
{
    int done = fits(space, new, is_plain) ? keeps_key(space, key, new, updated) : PyErr_Occurred() ? -1 : 0;
    if (done <= 0)
        return done;
    PyObject *indexes = updated_indexes(space, updated);
    done = indexes ? space_change(space, key, old, new, indexes) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(indexes);
    return done;
}

/* Change a row that is there, whose packed form may have been changed already: then that is `changed`. Returns the new
 * row, a new reference; NULL, maybe without an exception. */
static PyObject *change(PyObject *space, PyObject *key, PyObject *old, PyObject *changed,
                        const UpdateOperations *operations)
{
    UpdatedRow updated;
    PyObject *raw = apply(&updated, operations, changed, SPACE(space, DOUBLES)), *format = SPACE(space, FORMAT);
    PyObject *new = raw ? stored_tuple(raw, format) : NULL, *old_row = new ? stored_tuple(old, format) : NULL;
    Py_XDECREF(raw);
    if (changed != old)
        updated.first_moved = 0; /* it is not known where the first ones have changed it */
    if (!old_row || exchange(space, key, old_row, new, &updated, operations->is_plain) <= 0)
        Py_CLEAR(new);
    Py_XDECREF(old_row);
    return new;
}

static PyObject *update(PyObject *space, PyObject *index_id, const Key *key,
                        const UpdateOperations *operations)
{
    PyObject *primary_key, *row, *new;
    if (!space_is_usual(space) || space_locate(space, index_id, key, &primary_key, &row) <= 0)
        return NULL;
    new = row ? change(space, primary_key, row, row, operations) : Py_NewRef(Py_None);
    Py_XDECREF(primary_key);
    Py_XDECREF(row);
    return new;
}

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
static PyObject *apply_first(UpdateOperations *operations, const PackedOperations *packed, PyObject *row, PyObject *places)
{
    uint32_t left, part = UPDATE_OPERATIONS_MAX;
    Position at = msgpack_array(packed->at, packed->end, &left);
    int is_plain = 1;
    row = at && left && left <= MANY_OPERATIONS ? Py_NewRef(row) : NULL;
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
        Py_SETREF(row, apply(&changed, operations, row, places));
    }
    return row;
}

/* The same as `update` with more operations than can be read at once. */
static PyObject *update_in_parts(PyObject *space, PyObject *index_id, const Key *key, const PackedOperations *packed)
{
    PyObject *primary_key, *row, *new = NULL;
    UpdateOperations last;
    if (!space_is_usual(space) || space_locate(space, index_id, key, &primary_key, &row) <= 0)
        return NULL;
    PyObject *changed = row ? apply_first(&last, packed, row, SPACE(space, DOUBLES)) : NULL;
    if (changed)
        new = change(space, primary_key, row, changed, &last);
    Py_XDECREF(changed);
    Py_XDECREF(primary_key);
    Py_XDECREF(row);
    return new;
}

/* Store a row, or change the one that has its key. Returns 1; 0 unknown, nothing has changed; -1 with an exception. */
static int store_or_change(PyObject *space, Quick *primary, PyObject *row, const UpdateOperations *operations)
{
    PyObject *key = space_fitting_row_key(space, primary, row), *changed = NULL;
    if (!key)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *old = tree_object_get(primary->tree, key);
    int done = -1;
    if (old)
        done = (changed = change(space, key, old, old, operations)) ? 1 : PyErr_Occurred() ? -1 : 0;
    else if (!PyErr_Occurred())
        done = space_change(space, key, Py_None, row, SPACE(space, SECONDARIES));
    Py_XDECREF(changed);
    Py_XDECREF(old);
    Py_DECREF(key);
    return done;
}

static PyObject *upsert(PyObject *space, PyObject *row, const UpdateOperations *operations)
{
    if (!space_is_usual(space) || Py_TYPE(row) != &Tuple_Type)
        return NULL;
    PyObject *primary = SPACE(space, PRIMARY);
    Quick *quick = primary ? quick_of(primary) : NULL;
    if (!quick)
        return NULL;
    Py_INCREF(quick);
    int done = store_or_change(space, quick, row, operations);
    Py_DECREF(quick);
    return done > 0 ? Py_NewRef(Py_None) : NULL;
}

/* -- for other files -- */

PyObject *space_update(PyObject *space, PyObject *index_id, const Key *key,
                       PyObject *operations)
{
    UpdateOperations read;
    return read_operations(&read, operations) ? update(space, index_id, key, &read) : NULL;
}

PyObject *space_update_packed(PyObject *space, PyObject *index_id, const Key *key,
                              const PackedOperations *packed)
{
    UpdateOperations read;
    if (read_packed_operations(&read, packed))
        return update(space, index_id, key, &read);
    return read.problem == UPDATE_TOO_MANY ? update_in_parts(space, index_id, key, packed) : NULL;
}

PyObject *space_update_given(PyObject *space, PyObject *index_id, const Key *key,
                             PyObject *operations)
{
    UpdateOperations read;
    Buffer buffer;
    buffer_init(&buffer);
    int is_known = read_given(&read, &buffer, space, operations);
    PyObject *row = is_known ? update(space, index_id, key, &read) : NULL;
    buffer_free(&buffer);
    return row;
}

PyObject *space_upsert(PyObject *space, PyObject *row, PyObject *operations)
{
    UpdateOperations read;
    return read_operations(&read, operations) ? upsert(space, row, &read) : NULL;
}

PyObject *space_upsert_packed(PyObject *space, PyObject *row, const PackedOperations *packed)
{
    UpdateOperations read;
    return read_packed_operations(&read, packed) ? upsert(space, row, &read) : NULL;
}

PyObject *space_upsert_given(PyObject *space, PyObject *row, PyObject *operations)
{
    UpdateOperations read;
    Buffer buffer;
    buffer_init(&buffer);
    PyObject *done = read_given(&read, &buffer, space, operations) ? upsert(space, row, &read) : NULL;
    buffer_free(&buffer);
    return done;
}

/* -- functions -- */

static PyObject *or_none(PyObject *raw)
{
    return raw || PyErr_Occurred() ? raw : Py_NewRef(Py_None);
}

/* assign(field_no, value, raw): the row with another value in a field; None where that needs a closer look */
FUNCTION(native_assign)
{
    if (count != 3 || !PyLong_CheckExact(args[0]) || !PyBytes_CheckExact(args[1]) || !PyBytes_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "assign() takes a field's number, a packed value and a row");
        return NULL;
    }
    int overflow;
    long field_no = PyLong_AsLongAndOverflow(args[0], &overflow);
    if (field_no < 0 || field_no > INT32_MAX)
        Py_RETURN_NONE;
    static const UpdateDoubles none;
    UpdatedRow new;
    UpdateOperations operations;
    Position old = (Position)PyBytes_AS_STRING(args[2]);
    operations.count = 1;
    operations.all[0] = (UpdateOperation){.opcode = '=', .field_no = (int32_t)field_no};
    operations.all[0].argument.bytes = (Position)PyBytes_AS_STRING(args[1]);
    operations.all[0].argument.size = (size_t)PyBytes_GET_SIZE(args[1]);
    if (!update_row(&new, &operations, old, (size_t)PyBytes_GET_SIZE(args[2]), &none))
        Py_RETURN_NONE;
    return written(&new);
}

/* apply_request(operations, raw, doubles): the new row; None where Python has to apply them */
FUNCTION(native_apply_request)
{
    if (count != 3 || !PyBytes_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "apply_request() takes operations, a row and the places of doubles");
        return NULL;
    }
    if (!operations_type && prepare_updates() < 0)
        return NULL;
    UpdateOperations operations;
    UpdatedRow new;
    return or_none(read_operations(&operations, args[0]) ? apply(&new, &operations, args[1], args[2]) : NULL);
}

int prepare_updates(void)
{
    operations_type =
        find_class("iproto_server.box.update.operation", "Operations", operations_slots, OPERATIONS_SLOTS);
    return operations_type ? 0 : -1;
}
