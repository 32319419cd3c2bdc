/* What procedures ask the box itself: the twins of methods of box.box.Box and box.session.SessionFacade. */
#include "../native.h"

static PyObject *transactions_name;

static int prepare_box(PyTypeObject *type)
{
    if (!transactions_name)
        transactions_name = PyUnicode_InternFromString("transactions");
    return transactions_name ? 0 : -1;
}

/* Have a function called when the running transaction ends in one way; NULL, maybe without an exception. */
static PyObject *call_later(PyObject *box, int is_rollback, PyObject *function)
{
    PyObject *manager = PyObject_GetAttr(box, transactions_name), *done = NULL;
    TransactionObject *running = manager && PyObject_TypeCheck(manager, &Manager_Type)
        ? running_transaction((ManagerObject *)manager) : NULL;
    if (running && add_callback(is_rollback ? &running->on_rollback : &running->on_commit, function) == 0)
        done = Py_NewRef(Py_None);
    Py_XDECREF(manager);
    return done;
}

enum { ON_COMMIT, ON_ROLLBACK, BOX_METHODS };
static Method box_table[BOX_METHODS];

METHOD_FUNCTION(method_on_commit)
{
    int is_known = count == 1 && !names;
    ANSWER(is_known ? call_later(self, 0, args[0]) : NULL, box_table[ON_COMMIT]);
}

METHOD_FUNCTION(method_on_rollback)
{
    int is_known = count == 1 && !names;
    ANSWER(is_known ? call_later(self, 1, args[0]) : NULL, box_table[ON_ROLLBACK]);
}

static Method box_table[BOX_METHODS] = {
    METHOD_ENTRY("on_commit", method_on_commit, "on_commit($self, callback)\n--\n\nCall back after the commit."),
    METHOD_ENTRY("on_rollback", method_on_rollback, "on_rollback($self, callback)\n--\n\nCall back when undone."),
};

MethodTable box_methods = {"Box", prepare_box, box_table, BOX_METHODS};

/* -- the session -- */

static int prepare_sessions(PyTypeObject *type)
{
    return 0; /* the class is known as soon as there are requests */
}

static Method sessions_table[1];

METHOD_FUNCTION(method_id)
{
    int is_usual = Py_TYPE(self) == known[KNOWN_SESSIONS] && !count && !names;
    PyObject *session = is_usual ? get_slot(self, &sessions_current) : NULL;
    int is_known = session && Py_TYPE(session) == known[KNOWN_SESSION];
    ANSWER(is_known ? Py_XNewRef(get_slot(session, &session_id)) : NULL, sessions_table[0]);
}

static Method sessions_table[1] = {
    METHOD_ENTRY("id", method_id, "id($self)\n--\n\nThe current session's number."),
};

MethodTable sessions_methods = {"SessionFacade", prepare_sessions, sessions_table, 1};
