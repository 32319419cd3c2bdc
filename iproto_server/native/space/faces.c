/* Spaces and indexes as procedures see them: the twins of box.space.Space and box.space_index.Index. */
#include "../native.h"

static PyTypeObject *space_type, *index_type;
enum { FACE_CORE, FACE_SESSION, FACE_EXEMPTS_UPDATES, FACE_EXEMPTS_NEW_ROWS, FACE_SLOTS };
static Slot face[FACE_SLOTS] = {
    {"_core", 0}, {"_session", 0}, {"exempts_updates", 0}, {"exempts_new_rows", 0},
};
enum { INDEX_ID, INDEX_SPACE, INDEX_SLOTS };
static Slot index_slots[INDEX_SLOTS] = {{"id", 0}, {"space", 0}};


/* -- who may do what -- */

/* Whether the caller may do everything. */
static int may_all(PyObject *space)
{
    PyObject *sessions = get_slot(space, face + FACE_SESSION);
    PyObject *session = sessions && PyObject_TypeCheck(sessions, &Sessions_Type) ? ((SessionsObject *)sessions)->current
                                                                                 : NULL;
    return session && PyObject_TypeCheck(session, &Session_Type)
        && may_everything((SessionObject *)session, PRIVILEGE_READ | PRIVILEGE_WRITE);
}

/* The engine's space of a facade if it exists and nothing has to be done first, borrowed; NULL, without an exception,
 * where Python has to look. */
static SpaceObject *present_core(PyObject *space)
{
    PyObject *object = get_slot(space, face + FACE_CORE);
    SpaceObject *core = object ? as_space(object) : NULL;
    return core && !core->is_custom && core->manager->take_out == Py_None && !core->is_dropped ? core : NULL;
}

/* The same for a caller who may read and change it, a new reference. */
static SpaceObject *core_of(PyObject *space)
{
    return space && Py_TYPE(space) == space_type && may_all(space) ? (SpaceObject *)Py_XNewRef(present_core(space)) : NULL;
}

PyObject *facade_indexes(PyObject *space)
{
    SpaceObject *core = Py_TYPE(space) == space_type ? present_core(space) : NULL;
    return core ? core->indexes : NULL;
}

PyObject *new_index_facade(PyObject *space, PyObject *number)
{
    PyObject *index = index_type ? index_type->tp_alloc(index_type, 0) : NULL;
    if (index) {
        set_slot(index, index_slots + INDEX_ID, number);
        set_slot(index, index_slots + INDEX_SPACE, space);
    }
    return index;
}

/* -- keys and rows as procedures give them -- */

static int is_plain(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyFloat_Type || type == &PyBool_Type
        || type == &PyBytes_Type || value == Py_None;
}

/* Returns 0 where Python has to look at the key. What is found belongs to `given`, or is it. */
static int read_key(PyObject *const *given, Key *key)
{
    PyObject *value = *given;
    if (Py_TYPE(value) == &Tuple_Type && !(value = ((TupleObject *)value)->fields))
        return 0;
    if (PyList_CheckExact(value))
        *key = (Key){((PyListObject *)value)->ob_item, PyList_GET_SIZE(value), NULL, NULL};
    else if (PyTuple_CheckExact(value))
        *key = (Key){((PyTupleObject *)value)->ob_item, PyTuple_GET_SIZE(value), NULL, NULL};
    else if (is_plain(value))
        *key = (Key){given, value != Py_None, NULL, NULL};
    else
        return 0;
    return 1;
}

/* The fields as a list of their own, if all are plain; otherwise None: they are known by what was packed. */
static PyObject *plain_fields(PyObject *values)
{
    PyObject **items = PySequence_Fast_ITEMS(values);
    for (Py_ssize_t place = 0; place < PySequence_Fast_GET_SIZE(values); place++)
        if (!is_plain(items[place]))
            return Py_NewRef(Py_None);
    return PySequence_List(values);
}

/* The row of some values, as the space stores it; NULL, maybe without an exception. */
static PyObject *row_of(PyObject *values, PyObject *format)
{
    if (Py_TYPE(values) == &Tuple_Type)
        return new_tuple(((RawObject *)values)->raw, format, NULL);
    if (!PyList_CheckExact(values) && !PyTuple_CheckExact(values))
        return NULL;
    Buffer buffer;
    buffer_init(&buffer);
    PyObject *raw = NULL, *row = NULL;
    if (write_value(&buffer, values, 0) == 1)
        raw = PyBytes_FromStringAndSize((const char *)buffer.data, buffer.size);
    buffer_free(&buffer);
    PyObject *fields = raw ? plain_fields(values) : NULL;
    if (fields)
        row = fields == Py_None ? stored_tuple(raw, format) : new_tuple(raw, format, fields);
    Py_XDECREF(fields);
    Py_XDECREF(raw);
    return row;
}

/* -- what is done: new references; NULL, maybe without an exception -- */

static int exempts(PyObject *space, int slot)
{
    return get_slot(space, face + slot) == Py_True;
}

static PyObject *store(PyObject *space, PyObject *values, int is_insert)
{
    SpaceObject *core = core_of(space);
    PyObject *row = core ? row_of(values, core->format) : NULL, *stored = NULL;
    if (row) /* a Tuple that was given may be of bytes that a client has sent */
        stored = space_store(core, row, is_insert, Py_TYPE(values) != &Tuple_Type, exempts(space, FACE_EXEMPTS_NEW_ROWS));
    Py_XDECREF(row);
    Py_XDECREF((PyObject *)core);
    return stored;
}

/* A row that was found, as a Tuple. */
static PyObject *found_row(SpaceObject *core, PyObject *raw)
{
    if (!raw || raw == Py_None)
        return raw;
    PyObject *row = stored_tuple(raw, core->format);
    Py_DECREF(raw);
    return row;
}

typedef PyObject *(*Lookup)(SpaceObject *space, uint64_t index_id, const Key *key);

static PyObject *look_up(PyObject *space, uint64_t index_id, PyObject *const *given, Lookup lookup)
{
    Key key;
    SpaceObject *core = read_key(given, &key) ? core_of(space) : NULL;
    PyObject *row = core ? found_row(core, lookup(core, index_id, &key)) : NULL;
    Py_XDECREF((PyObject *)core);
    return row;
}

/* The first row of an index with an order. */
static PyObject *find_lowest(SpaceObject *space, uint64_t index_id, const Key *key)
{
    TreeObject *index = space_index(space, index_id);
    return index && index->is_ordered ? space_first(space, index_id, key) : NULL;
}

static PyObject *delete(PyObject *space, uint64_t index_id, PyObject *const *given)
{
    Key key;
    SpaceObject *core = read_key(given, &key) ? core_of(space) : NULL;
    PyObject *row = core ? space_delete(core, index_id, &key) : NULL;
    Py_XDECREF((PyObject *)core);
    return row;
}

/* Read operations of a procedure. Returns whether the engine knows them, otherwise Python does; -1 with an exception. */
static int read_operations(UpdateOperations *read, Buffer *buffer, SpaceObject *core, PyObject *given, ChangeCall *call)
{
    int is_known = read_given_operations(read, buffer, core, given);
    if (!is_known && !PyErr_Occurred())
        call->operations = PyObject_CallMethod((PyObject *)core, "parse_operations", "(O)", given);
    return PyErr_Occurred() ? -1 : is_known;
}

static PyObject *update(PyObject *space, uint64_t index_id, PyObject *const *args)
{
    Key key;
    UpdateOperations read;
    Buffer buffer;
    SpaceObject *core = read_key(args, &key) ? core_of(space) : NULL;
    if (!core)
        return NULL;
    buffer_init(&buffer);
    ChangeCall call = {.given = args[1], .is_exempt = exempts(space, FACE_EXEMPTS_UPDATES)};
    int is_known = read_operations(&read, &buffer, core, args[1], &call);
    PyObject *row = is_known < 0 ? NULL : space_update(core, index_id, &key, &call, is_known ? &read : NULL);
    buffer_free(&buffer);
    Py_DECREF((PyObject *)core);
    return row;
}

static PyObject *upsert(PyObject *space, PyObject *values, PyObject *operations)
{
    UpdateOperations read;
    Buffer buffer;
    SpaceObject *core = core_of(space);
    PyObject *row = core ? row_of(values, core->format) : NULL, *done = NULL;
    if (row) {
        buffer_init(&buffer);
        ChangeCall call = {.given = operations};
        int is_known = read_operations(&read, &buffer, core, operations, &call);
        if (is_known >= 0)
            done = space_upsert(core, row, Py_TYPE(values) != &Tuple_Type, &call, is_known ? &read : NULL);
        buffer_free(&buffer);
    }
    Py_XDECREF(row);
    Py_XDECREF((PyObject *)core);
    return done;
}

/* -- methods -- */

static int prepare_space(PyTypeObject *type)
{
    if (space_type == type)
        return 0;
    if (find_slots((PyObject *)type, face, FACE_SLOTS) < 0)
        return -1;
    space_type = (PyTypeObject *)Py_NewRef(type);
    return 0;
}

static int prepare_index(PyTypeObject *type)
{
    if (index_type == type)
        return 0;
    if (find_slots((PyObject *)type, index_slots, INDEX_SLOTS) < 0)
        return -1;
    index_type = (PyTypeObject *)Py_NewRef(type);
    return 0;
}

enum { SPACE_INSERT, SPACE_REPLACE, SPACE_GET, SPACE_UPDATE, SPACE_UPSERT, SPACE_DELETE, SPACE_METHODS };
static Method space_methods[SPACE_METHODS];
enum { INDEX_GET, INDEX_FIRST, INDEX_MIN, INDEX_MAX, INDEX_UPDATE, INDEX_DELETE, INDEX_METHODS };
static Method index_methods[INDEX_METHODS];

static PyObject *const no_key = Py_None;

#define IS_CALLED_WITH(number) (count == (number) && !names)

METHOD_FUNCTION(method_space_insert)
{
    ANSWER(IS_CALLED_WITH(1) ? store(self, args[0], 1) : NULL, space_methods[SPACE_INSERT]);
}

METHOD_FUNCTION(method_space_replace)
{
    ANSWER(IS_CALLED_WITH(1) ? store(self, args[0], 0) : NULL, space_methods[SPACE_REPLACE]);
}

METHOD_FUNCTION(method_space_get)
{
    ANSWER(IS_CALLED_WITH(1) ? look_up(self, 0, args, space_find) : NULL, space_methods[SPACE_GET]);
}

METHOD_FUNCTION(method_space_update)
{
    ANSWER(IS_CALLED_WITH(2) ? update(self, 0, args) : NULL, space_methods[SPACE_UPDATE]);
}

METHOD_FUNCTION(method_space_upsert)
{
    ANSWER(IS_CALLED_WITH(2) ? upsert(self, args[0], args[1]) : NULL, space_methods[SPACE_UPSERT]);
}

METHOD_FUNCTION(method_space_delete)
{
    ANSWER(IS_CALLED_WITH(1) ? delete(self, 0, args) : NULL, space_methods[SPACE_DELETE]);
}

/* The number of an index, after its space. */
#define OF_INDEX(self) get_slot(self, index_slots + INDEX_SPACE), PyLong_AsUnsignedLongLong(get_slot(self, index_slots + INDEX_ID))

static int is_index(PyObject *self)
{
    int overflow;
    PyObject *number = Py_TYPE(self) == index_type ? get_slot(self, index_slots + INDEX_ID) : NULL;
    return number && PyLong_CheckExact(number) && PyLong_AsLongAndOverflow(number, &overflow) >= 0;
}

METHOD_FUNCTION(method_index_get)
{
    int is_known = IS_CALLED_WITH(1) && is_index(self);
    ANSWER(is_known ? look_up(OF_INDEX(self), args, space_find) : NULL, index_methods[INDEX_GET]);
}

METHOD_FUNCTION(method_index_first)
{
    int is_known = (IS_CALLED_WITH(0) || IS_CALLED_WITH(1)) && is_index(self);
    PyObject *const *key = count ? args : &no_key;
    ANSWER(is_known ? look_up(OF_INDEX(self), key, space_first) : NULL, index_methods[INDEX_FIRST]);
}

/* Indexes without an order are none that space_first or space_last know. */
METHOD_FUNCTION(method_index_min)
{
    int is_known = (IS_CALLED_WITH(0) || IS_CALLED_WITH(1)) && is_index(self);
    PyObject *const *key = count ? args : &no_key;
    ANSWER(is_known ? look_up(OF_INDEX(self), key, find_lowest) : NULL, index_methods[INDEX_MIN]);
}

METHOD_FUNCTION(method_index_max)
{
    int is_known = (IS_CALLED_WITH(0) || IS_CALLED_WITH(1)) && is_index(self);
    PyObject *const *key = count ? args : &no_key;
    ANSWER(is_known ? look_up(OF_INDEX(self), key, space_last) : NULL, index_methods[INDEX_MAX]);
}

METHOD_FUNCTION(method_index_update)
{
    int is_known = IS_CALLED_WITH(2) && is_index(self);
    ANSWER(is_known ? update(OF_INDEX(self), args) : NULL, index_methods[INDEX_UPDATE]);
}

METHOD_FUNCTION(method_index_delete)
{
    int is_known = IS_CALLED_WITH(1) && is_index(self);
    ANSWER(is_known ? delete(OF_INDEX(self), args) : NULL, index_methods[INDEX_DELETE]);
}

static Method space_methods[SPACE_METHODS] = {
    METHOD_ENTRY("insert", method_space_insert, "insert($self, values)\n--\n\nStore a new row."),
    METHOD_ENTRY("replace", method_space_replace, "replace($self, values)\n--\n\nStore a row."),
    METHOD_ENTRY("get", method_space_get, "get($self, key)\n--\n\nThe row with that primary key, or None."),
    METHOD_ENTRY("update", method_space_update, "update($self, key, operations)\n--\n\nChange a row."),
    METHOD_ENTRY("upsert", method_space_upsert, "upsert($self, values, operations)\n--\n\nStore or change a row."),
    METHOD_ENTRY("delete", method_space_delete, "delete($self, key)\n--\n\nRemove a row and answer it."),
};

static Method index_methods[INDEX_METHODS] = {
    METHOD_ENTRY("get", method_index_get, "get($self, key)\n--\n\nThe row with a whole key, or None."),
    METHOD_ENTRY("first", method_index_first, "first($self, key=None)\n--\n\nThe first row with a key, or None."),
    METHOD_ENTRY("min", method_index_min, "min($self, key=None)\n--\n\nThe row with the smallest key, or None."),
    METHOD_ENTRY("max", method_index_max, "max($self, key=None)\n--\n\nThe row with the greatest key, or None."),
    METHOD_ENTRY("update", method_index_update, "update($self, key, operations)\n--\n\nChange a row."),
    METHOD_ENTRY("delete", method_index_delete, "delete($self, key)\n--\n\nRemove a row and answer it."),
};

MethodTable space_face_methods = {"Space", prepare_space, space_methods, SPACE_METHODS};
MethodTable index_face_methods = {"Index", prepare_index, index_methods, INDEX_METHODS};
