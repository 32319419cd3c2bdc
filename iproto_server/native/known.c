/* The Python classes that compiled code looks into, and the slots that it looks at. */
#include "native.h"

PyTypeObject *known[KNOWN_COUNT];

Slot space_id = {"id"}, space_is_temporary = {"is_temporary"}, space_is_local = {"is_local"};
Slot manager_statements = {"statements"}, manager_on_commit = {"_on_commit"}, manager_on_rollback = {"_on_rollback"},
    manager_has_logged = {"has_logged"}, manager_unwritten = {"unwritten"}, manager_is_writing = {"is_writing"},
    manager_is_write_due = {"is_write_due"}, manager_write_soon = {"write_soon"}, manager_journal = {"journal"},
    manager_on_change = {"on_change"}, manager_take_out = {"take_out"}, manager_interactive = {"interactive"};
Slot log_mode = {"mode"}, log_replica_id = {"_replica_id"}, log_lsn = {"_lsn"}, log_waiting = {"_waiting"},
    log_timestamp = {"_timestamp"}, log_clock = {"_clock"}, log_is_failing = {"_is_failing"},
    log_is_closed = {"_is_closed"};
Slot session_sync = {"sync"}, session_credentials = {"credentials"};
Slot sessions_current = {"current"}, sessions_background = {"background"};
Slot credentials_universe = {"universe"};
Slot connection_server = {"_server"}, connection_output = {"_output"}, connection_logged = {"_logged"},
    connection_output_size = {"_output_size"}, connection_held_size = {"_held_size"},
    connection_has_output = {"_has_output"}, connection_is_write_paused = {"_is_write_paused"},
    connection_is_closing = {"is_closing"}, connection_in_flight = {"in_flight"}, connection_session = {"session"},
    connection_is_held = {"_is_held"}, connection_has_hurried = {"_has_hurried"}, connection_fault = {"_fault"},
    connection_decoder = {"_decoder"}, connection_handle = {"_handle"}, connection_transport = {"_transport"};
Slot decoder_rest = {"_rest"}, decoder_buffer = {"_buffer"}, decoder_max_frame = {"_max_frame"};
Slot procedure_function = {"function"}, procedure_is_async = {"is_async"};

static const struct {
    const char *name;
    Slot *slots[20];
} classes[KNOWN_COUNT] = {
    [KNOWN_SPACE] = {"SpaceDefinition", {&space_id, &space_is_temporary, &space_is_local}},
    [KNOWN_MANAGER] = {"TransactionManager", {
        &manager_statements, &manager_on_commit, &manager_on_rollback, &manager_has_logged, &manager_unwritten,
        &manager_is_writing, &manager_is_write_due, &manager_write_soon, &manager_journal, &manager_on_change,
        &manager_take_out, &manager_interactive}},
    [KNOWN_COMMITTED] = {"Committed", {NULL}},
    [KNOWN_LOG] = {"WriteAheadLog", {
        &log_mode, &log_replica_id, &log_lsn, &log_waiting, &log_timestamp, &log_clock, &log_is_failing,
        &log_is_closed}},
    [KNOWN_SESSION] = {"Session", {&session_sync, &session_credentials}},
    [KNOWN_SESSIONS] = {"SessionFacade", {&sessions_current, &sessions_background}},
    [KNOWN_CREDENTIALS] = {"Credentials", {&credentials_universe}},
    [KNOWN_PROCEDURE] = {"Procedure", {&procedure_function, &procedure_is_async}},
    [KNOWN_WAITER] = {"Waiter", {NULL}},
    [KNOWN_CONNECTION] = {"Connection", {
        &connection_server, &connection_output, &connection_logged, &connection_output_size, &connection_held_size,
        &connection_has_output, &connection_is_write_paused, &connection_is_closing, &connection_in_flight,
        &connection_session, &connection_is_held, &connection_has_hurried, &connection_fault, &connection_decoder,
        &connection_handle, &connection_transport}},
    [KNOWN_DECODER] = {"FrameDecoder", {&decoder_rest, &decoder_buffer, &decoder_max_frame}},
};

/* know(class) */
FUNCTION(native_know)
{
    if (count != 1 || !PyType_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "know() takes a class");
        return NULL;
    }
    PyTypeObject *type = (PyTypeObject *)args[0];
    for (int place = 0; place < KNOWN_COUNT; place++)
        if (!strcmp(classes[place].name, type->tp_name)) {
            for (Slot *const *slot = classes[place].slots; *slot; slot++)
                if (find_slots(args[0], *slot, 1) < 0)
                    return NULL;
            Py_XSETREF(known[place], (PyTypeObject *)Py_NewRef(args[0]));
            Py_RETURN_NONE;
        }
    return PyErr_Format(PyExc_LookupError, "%s is no class that compiled code looks into", type->tp_name);
}
