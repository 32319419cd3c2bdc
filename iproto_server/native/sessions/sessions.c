/* The base classes of Session, SessionFacade and Credentials: the fields that every request looks at. */
#include "../native.h"

GC_FIELDS(session, offsetof(SessionObject, id), offsetof(SessionObject, credentials))
GC_FIELDS(sessions, offsetof(SessionsObject, current), offsetof(SessionsObject, background))

int may_everything(const SessionObject *session, unsigned long privileges)
{
    PyObject *user = session->credentials;
    if (!user || !PyObject_TypeCheck(user, &Credentials_Type))
        return 0;
    unsigned long granted = ((CredentialsObject *)user)->universe;
    privileges |= PRIVILEGE_USAGE;
    return (granted & privileges) == privileges;
}

static PyMemberDef credentials_members[] = {
    {"universe", T_ULONG, offsetof(CredentialsObject, universe), 0, "The privileges on the universe, as a sum of bits."},
    {NULL},
};

PyTypeObject Credentials_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.CredentialsState",
    .tp_doc = "A user's privileges on the universe.",
    .tp_basicsize = sizeof(CredentialsObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_members = credentials_members,
};

static PyMemberDef session_members[] = {
    {"id", T_OBJECT_EX, offsetof(SessionObject, id), 0, "The session's number."},
    {"sync", T_ULONGLONG, offsetof(SessionObject, sync), 0, "The sync of its last request."},
    {"credentials", T_OBJECT_EX, offsetof(SessionObject, credentials), 0, "The user whose privileges apply."},
    {NULL},
};

PyTypeObject Session_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    BASE_TYPE(session, SessionObject, "SessionState", "A session's number, user and last request."),
    .tp_members = session_members,
};

/* id(): the number of the current session */
static PyObject *sessions_id(PyObject *self, PyObject *ignored)
{
    PyObject *current = ((SessionsObject *)self)->current;
    if (current && PyObject_TypeCheck(current, &Session_Type) && ((SessionObject *)current)->id)
        return Py_NewRef(((SessionObject *)current)->id);
    PyErr_SetString(PyExc_AttributeError, "there is no current session");
    return NULL;
}

static PyMemberDef sessions_members[] = {
    {"current", T_OBJECT_EX, offsetof(SessionsObject, current), 0, "The session of the request that is handled."},
    {"background", T_OBJECT_EX, offsetof(SessionsObject, background), 0, "The session of the server's own work."},
    {NULL},
};

static PyMethodDef sessions_methods[] = {
    {"id", sessions_id, METH_NOARGS, "id($self)\n--\n\nThe current session's number."},
    {NULL},
};

PyTypeObject Sessions_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    BASE_TYPE(sessions, SessionsObject, "CurrentSession", "The session of the request that is handled."),
    .tp_members = sessions_members,
    .tp_methods = sessions_methods,
};
