/* Folds the rows of a log into the states of keys in one pass: `LogFolder.apply_buffer` in
 * spark/source/state/log_folder.py. Rows that are not plain are detected before any state changes, and left to Python.
 */
#include "key_states.h"
#include "row_scanner.h"

#include "../../iproto_server/engine/core/update/update.h"

#define MEMBERS 32
#define SHARED 8
#define SPREAD 0x9e3779b97f4a7c15

enum { NUMBERS = 1, STRINGS };

/* The parameters of `LogFolder`. */
typedef struct {
    Position begin, end;     /* the rows */
    int64_t space;           /* the space to fold */
    int64_t kind;            /* the kind of its primary key */
    int64_t task, tasks;     /* this task, and the number of tasks */
    int has_snapshot;        /* whether a snapshot may have further rows */
    int trusts_inserts;      /* whether the snapshot has no key whose first change is an INSERT */
    const int64_t *low, *high; /* by member: rows with low < LSN <= high count */
    const int64_t *clock;      /* by member, the last LSN seen so far; NULL disables the check for gaps */
    const int64_t *most;       /* by member, the highest LSN to check */
    UpdateDoubles doubles;     /* the fields of type double */
    PyObject *operate;         /* applies an UPDATE or UPSERT in Python; None if no row may be one */
} Rule;

/* Operations that wait for rows of the snapshot. */
enum { HAS_OPERATIONS = 1, HAS_UPSERTS = 2 };

/* An UPDATE or UPSERT. Offsets are negative if there is no value. */
typedef struct {
    int64_t key, key_end, operations, operations_end;
    int64_t base, lsn;
} Operated;

/* The effect of a row: the key as cut out, and the tuple, whose offset is negative if there is none. */
typedef struct {
    int64_t item, item_end, tuple, tuple_end;
    int64_t operated; /* the number of its operations, from 1; 0: it has none */
    int is_insert;
} Change;

typedef struct {
    Change *all;
    size_t count, room;
    Operated *operated;
    size_t operated_count, operated_room;
    int64_t member, first, last; /* the only writer, and its LSNs, which have no gap */
    int64_t reached;             /* the member's clock after the rows, if gaps are checked */
    int waiting;                 /* HAS_OPERATIONS, HAS_UPSERTS */
} Changes;

/* Whether a key has its shortest encoding: otherwise, other bytes may encode the same key. */
static int is_shortest(const Rule *rule, const LogRow *row)
{
    if (row->item < 0)
        return 0;
    Position at = rule->begin + row->item;
    int first = at[0], width = first & 3; /* of the number or length, as a power of 2 */
    if (rule->kind == NUMBERS) {
        if (first < 0x80)
            return 1;
        if (first < 0xcc || first > 0xcf)
            return 0;
        uint64_t least = width == 0 ? 0x80 : (uint64_t)1 << (4 << width);
        return big_endian(at + 1, 1 << width) >= least;
    }
    if (first >= 0xa0 && first < 0xc0)
        return 1;
    if (first < 0xd9 || first > 0xdb)
        return 0;
    width = first - 0xd9;
    return big_endian(at + 1, 1 << width) >= (width == 0 ? 32 : (uint64_t)1 << (4 << width));
}

/* `share_of` in spark/source/decode/packed_keys.py. */
static int is_own(const Rule *rule, const Key *key)
{
    if (rule->tasks == 1)
        return 1;
    size_t size = key->size < SHARED ? key->size : SHARED;
    uint64_t share = big_endian(key->at + key->size - size, (int)size) * SPREAD >> 32;
    return share % (uint64_t)rule->tasks == (uint64_t)rule->task;
}

/* Make room for another element of an array. Returns 0 with an exception. */
static int grow(void **all, size_t *room, size_t count, size_t size)
{
    if (count < *room)
        return 1;
    size_t wider = 2 * *room + 1024;
    void *moved = PyMem_Realloc(*all, wider * size);
    if (!moved) {
        PyErr_NoMemory();
        return 0;
    }
    *all = moved;
    *room = wider;
    return 1;
}

/* Append a change. Returns 0 with an exception. */
static int keep_change(Changes *changes, const LogRow *row)
{
    if (!grow((void **)&changes->all, &changes->room, changes->count, sizeof *changes->all))
        return 0;
    Change *change = &changes->all[changes->count++];
    *change = (Change){row->item, row->item_end, row->tuple, row->tuple_end, 0, row->type == ROW_INSERT};
    if (row->operations < 0)
        return 1;
    if (!grow((void **)&changes->operated, &changes->operated_room, changes->operated_count, sizeof *changes->operated))
        return 0;
    changes->operated[changes->operated_count++] = (Operated){
        row->key, row->key_end, row->operations, row->operations_end, row->base, row->lsn,
    };
    change->operated = (int64_t)changes->operated_count;
    return 1;
}

/* Collect the changes that count. Returns 0 if a row is not plain, or with an exception. */
static int find_changes(const Rule *rule, Changes *changes)
{
    LogRow row = {.is_last = 0};
    for (Position at = rule->begin; at < rule->end;) {
        int is_first = at == rule->begin;
        if (!next_log_row(rule->begin, &at, rule->end, &row) || row.member >= MEMBERS)
            return 0;
        if (is_first) {
            changes->member = row.member;
            changes->first = row.lsn;
        } else if (row.member != changes->member || row.lsn - 1 != changes->last) {
            return 0;
        }
        changes->last = row.lsn;
        if (row.space != rule->space || row.lsn <= rule->low[row.member] || row.lsn > rule->high[row.member])
            continue;
        if ((row.operations >= 0 && rule->operate == Py_None) || !is_shortest(rule, &row)
            || !keep_change(changes, &row))
            return 0;
    }
    if (!row.is_last)
        return 0;
    if (!rule->clock)
        return 1;
    int64_t clock = rule->clock[changes->member], most = rule->most[changes->member];
    int has_new = changes->last > clock && most > clock && most >= changes->first;
    changes->reached = !has_new ? clock : changes->last < most ? changes->last : most;
    return !has_new || changes->first - 1 <= clock;
}

static PyObject *piece(const Rule *rule, int64_t start, int64_t end)
{
    return start < 0 ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize((const char *)rule->begin + start, end - start);
}

/* Let Python apply an UPDATE or UPSERT: operate(type, LSN, member, tuple, key, operations, base). Returns 0 with an
 * exception. */
static int operate_in_python(const Rule *rule, const Change *change, const Operated *operated, int64_t member)
{
    PyObject *tuple = piece(rule, change->tuple, change->tuple_end);
    PyObject *key = piece(rule, operated->key, operated->key_end);
    PyObject *operations = piece(rule, operated->operations, operated->operations_end), *result = NULL;
    int type = change->tuple < 0 ? ROW_UPDATE : ROW_UPSERT;
    if (tuple && key && operations)
        result = PyObject_CallFunction(rule->operate, "iLLOOOL", type, (long long)operated->lsn, (long long)member,
                                       tuple, key, operations, (long long)operated->base);
    Py_XDECREF(tuple);
    Py_XDECREF(key);
    Py_XDECREF(operations);
    Py_XDECREF(result);
    return result != NULL;
}

/* Append operations to those that wait for the row of the snapshot, as `LoggedOperations`. Returns 0 with an
 * exception. */
static int wait_for_row(KeyStates *states, const Rule *rule, const Change *change, const Key *key, PyObject *waiting,
                        Changes *changes)
{
    const Operated *operated = &changes->operated[change->operated - 1];
    PyObject *tuple = piece(rule, change->tuple, change->tuple_end);
    PyObject *operations = piece(rule, operated->operations, operated->operations_end), *logged = NULL;
    if (tuple && operations)
        logged = Py_BuildValue("LLOOL", (long long)operated->lsn, (long long)changes->member, tuple, operations,
                               (long long)operated->base);
    Py_XDECREF(tuple);
    Py_XDECREF(operations);
    changes->waiting |= HAS_OPERATIONS | (change->tuple < 0 ? 0 : HAS_UPSERTS);
    int is_done = 0;
    if (logged && waiting) {
        is_done = PyList_Append(waiting, logged) == 0;
    } else if (logged && (waiting = PyList_New(1))) {
        PyList_SET_ITEM(waiting, 0, Py_NewRef(logged));
        is_done = set_state(states, key, waiting) != NULL;
    }
    Py_XDECREF(logged);
    return is_done;
}

/* Whether operations change the first field, which has the key. */
static int touches_key(const UpdatedRow *row)
{
    int is_touched = row->first_moved == 0;
    for (int place = 0; place < row->touched_count; place++)
        is_touched |= row->touched[place] == 0;
    return is_touched;
}

/* Apply operations to a row. Returns NULL, without an exception where Python has to do it. */
static PyObject *updated(const UpdateOperations *operations, PyObject *row, const UpdateDoubles *doubles, int is_upsert)
{
    UpdatedRow new_row;
    const uint8_t *old = (const uint8_t *)PyBytes_AS_STRING(row);
    if (update_row(&new_row, operations, old, (size_t)PyBytes_GET_SIZE(row), doubles) != UPDATE_DONE
        || (is_upsert && touches_key(&new_row)))
        return NULL;
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)new_row.size);
    if (made)
        update_write(&new_row, (uint8_t *)PyBytes_AS_STRING(made));
    return made;
}

/* Apply one of `LoggedOperations`; the row is NULL if there is none. Returns NULL, without an exception where Python
 * has to do it. */
static PyObject *row_after(PyObject *row, PyObject *logged, const UpdateDoubles *doubles)
{
    PyObject *tuple, *raw;
    long long lsn, member, base;
    if (!PyTuple_Check(logged) || !PyArg_ParseTuple(logged, "LLOOL", &lsn, &member, &tuple, &raw, &base))
        return NULL;
    int is_upsert = tuple != Py_None;
    if (!PyBytes_CheckExact(raw) || (is_upsert && !PyBytes_CheckExact(tuple)) || (!row && !is_upsert))
        return NULL;
    UpdateOperations operations;
    Position at = (Position)PyBytes_AS_STRING(raw);
    if (update_read(&operations, at, at + PyBytes_GET_SIZE(raw), (uint32_t)base, NULL, NULL) != UPDATE_DONE)
        return NULL;
    return row ? updated(&operations, row, doubles, is_upsert) : Py_NewRef(tuple);
}

/* quick_operations(row, operations, doubles, has more doubles): the row after operations; None if Python has to apply
 * them */
KERNEL(quick_operations)
{
    if (count != 4 || (args[0] != Py_None && !PyBytes_CheckExact(args[0])) || !PyList_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "quick_operations() takes bytes or None, a list and two numbers");
        return NULL;
    }
    UpdateDoubles doubles = {PyLong_AsUnsignedLongLong(args[2]), PyObject_IsTrue(args[3])};
    if (PyErr_Occurred())
        return NULL;
    PyObject *row = args[0] == Py_None ? NULL : Py_NewRef(args[0]);
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(args[1]); place++) {
        PyObject *next = row_after(row, PyList_GET_ITEM(args[1], place), &doubles);
        Py_XDECREF(row);
        row = next;
        if (!row)
            return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    return row ? row : Py_NewRef(Py_None);
}

/* `LogFolder._operate`: an UPDATE or UPSERT, whose operations have no names. Returns 0 with an exception. */
static int fold_operations(KeyStates *states, const Rule *rule, const Change *change, const Key *key, Changes *changes)
{
    int own = is_own(rule, key), is_upsert = change->tuple >= 0;
    if (!own && !rule->has_snapshot)
        return 1;
    const Entry *entry = find_state(states, key);
    PyObject *state = entry ? entry->state : rule->has_snapshot ? NULL : Py_None;
    if (!state || PyList_Check(state))
        return wait_for_row(states, rule, change, key, state, changes);
    if (!own)
        return !is_upsert || set_state(states, key, Py_NewRef(Py_True)) != NULL;
    if (PyBool_Check(state) || (state == Py_None && !is_upsert))
        return 1;
    const Operated *operated = &changes->operated[change->operated - 1];
    UpdateOperations operations;
    PyObject *made = NULL;
    if (update_read(&operations, rule->begin + operated->operations, rule->begin + operated->operations_end,
                    (uint32_t)operated->base, NULL, NULL) == UPDATE_DONE)
        made = state == Py_None ? piece(rule, change->tuple, change->tuple_end)
            : updated(&operations, state, &rule->doubles, is_upsert);
    if (made)
        return set_state(states, key, made) != NULL;
    return !PyErr_Occurred() && operate_in_python(rule, change, operated, changes->member);
}

/* Returns 0 with an exception. */
static int fold_change(KeyStates *states, const Rule *rule, const Change *change, const Key *key, Changes *changes)
{
    if (change->operated)
        return fold_operations(states, rule, change, key, changes);
    Entry *entry = find_state(states, key);
    if (change->tuple < 0 && (!rule->has_snapshot || (entry && entry->is_new))) {
        if (entry)
            remove_state(states, entry);
        return 1;
    }
    PyObject *state;
    if (change->tuple < 0)
        state = Py_NewRef(Py_None);
    else if (is_own(rule, key))
        state = PyBytes_FromStringAndSize((const char *)rule->begin + change->tuple, change->tuple_end - change->tuple);
    else if (rule->has_snapshot)
        state = Py_NewRef(Py_True);
    else
        return 1;
    if (!state)
        return 0;
    if (entry) {
        replace_state(states, entry, state);
        return 1;
    }
    entry = set_state(states, key, state);
    if (entry)
        entry->is_new = change->is_insert && rule->trusts_inserts;
    return entry != NULL;
}

static int fold_changes(KeyStates *states, const Rule *rule, Changes *changes)
{
    Key keys[PREFETCHED];
    size_t count = changes->count;
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = count - begin < PREFETCHED ? count : begin + PREFETCHED;
        for (size_t number = begin; number < end; number++) {
            const Change *change = &changes->all[number];
            keys[number - begin] = key_of(rule->begin + change->item, (size_t)(change->item_end - change->item));
        }
        prefetch_keys(states, keys, end - begin);
        for (size_t number = begin; number < end; number++)
            if (!fold_change(states, rule, &changes->all[number], &keys[number - begin], changes))
                return 0;
    }
    return 1;
}

/* Get an array of one number per member. Returns 0 with an exception. */
static int numbers_init(Py_buffer *view, PyObject *object, const int64_t **numbers)
{
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0)
        return 0;
    *numbers = view->buf;
    if (view->len == MEMBERS * (Py_ssize_t)sizeof **numbers)
        return 1;
    PyErr_SetString(PyExc_ValueError, "expected one number per member");
    return 0;
}

/* fold(data, size, space, kind, task, tasks, has_snapshot, trusts_inserts, low, high, clock, most, doubles, has more doubles, operate):
 * the member that wrote the rows, its clock if gaps are checked, and whether operations wait for rows; None, with no
 * state changed, if a row is not plain */
PyObject *key_states_fold(PyObject *self, PyObject *args)
{
    PyObject *data, *numbers[4], *operate;
    Py_ssize_t size;
    long long space, kind, task, tasks;
    unsigned long long doubles;
    int has_snapshot, trusts_inserts, has_more;
    if (!PyArg_ParseTuple(args, "SnLLLLppOOOOKpO:fold", &data, &size, &space, &kind, &task, &tasks, &has_snapshot,
                          &trusts_inserts, &numbers[0], &numbers[1], &numbers[2], &numbers[3], &doubles, &has_more, &operate))
        return NULL;
    if (size < 0 || size > PyBytes_GET_SIZE(data) || tasks < 1 || (kind != NUMBERS && kind != STRINGS)) {
        PyErr_SetString(PyExc_ValueError, "fold() takes a size within the data, a kind of keys, and tasks");
        return NULL;
    }
    Position begin = (Position)PyBytes_AS_STRING(data);
    Rule rule = {begin, begin + size, space, kind, task, tasks, has_snapshot, trusts_inserts, NULL, NULL, NULL, NULL,
                 {doubles, has_more}, operate};
    const int64_t **const places[] = {&rule.low, &rule.high, &rule.clock, &rule.most};
    Py_buffer views[4] = {{NULL}};
    int is_known = 1;
    for (int place = 0; is_known && place < (numbers[2] == Py_None ? 2 : 4); place++)
        is_known = numbers_init(&views[place], numbers[place], places[place]);
    Changes changes = {NULL};
    PyObject *result = NULL;
    if (is_known) {
        int is_usual = size && find_changes(&rule, &changes);
        if (is_usual && fold_changes((KeyStates *)self, &rule, &changes))
            result = Py_BuildValue("LLi", (long long)changes.member, (long long)changes.reached, changes.waiting);
        else if (!PyErr_Occurred())
            result = Py_NewRef(Py_None);
        PyMem_Free(changes.all);
        PyMem_Free(changes.operated);
    }
    for (int place = 0; place < 4; place++)
        PyBuffer_Release(&views[place]);
    return result;
}
