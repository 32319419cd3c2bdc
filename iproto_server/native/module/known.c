/* The Python classes that compiled code looks into, and the slots that it looks at. */
#include "../native.h"

PyTypeObject *known[KNOWN_COUNT];

Slot session_id = {"id"}, session_sync = {"sync"}, session_credentials = {"credentials"};
Slot sessions_current = {"current"}, sessions_background = {"background"};
Slot credentials_universe = {"universe"};
Slot connection_server = {"_server"}, connection_output = {"_output"}, connection_held_size = {"_held_size"},
    connection_has_output = {"_has_output"}, connection_is_write_paused = {"_is_write_paused"},
    connection_is_closing = {"is_closing"}, connection_in_flight = {"in_flight"},
    connection_is_held = {"_is_held"}, connection_is_suspended = {"_is_suspended"},
    connection_has_hurried = {"_has_hurried"}, connection_fault = {"_fault"},
    connection_has_received = {"_has_received"}, connection_decoder = {"_decoder"}, connection_handle = {"_handle"},
    connection_transport = {"_transport"}, connection_traffic = {"_traffic"},
    connection_session = {"session"};
Slot catalog_spaces = {"spaces"}, catalog_schema_version = {"schema_version"}, calls_by_name = {"_by_name"};
Slot batch_connections = {"_connections"}, batch_is_scheduled = {"_is_scheduled"};
Slot procedure_name = {"name"}, procedure_function = {"function"}, procedure_is_async = {"is_async"};

static const struct {
    const char *module, *name;
    Slot *slots[20];
} classes[KNOWN_COUNT] = {
    [KNOWN_SESSION] = {"iproto_server.box.access.session", "Session", {&session_id, &session_sync, &session_credentials}},
    [KNOWN_SESSIONS] = {"iproto_server.box.access.session", "SessionFacade", {&sessions_current, &sessions_background}},
    [KNOWN_CREDENTIALS] = {"iproto_server.box.access.access_control", "Credentials", {&credentials_universe}},
    [KNOWN_PROCEDURE] = {"iproto_server.app", "Procedure", {
        &procedure_name, &procedure_function, &procedure_is_async}},
    [KNOWN_WAITER] = {"iproto_server.box.api.waiter", "Waiter", {NULL}},
    [KNOWN_CONNECTION] = {"iproto_server.server.connection.connection", "Connection", {
        &connection_server, &connection_output, &connection_held_size,
        &connection_has_output, &connection_is_write_paused, &connection_is_closing, &connection_in_flight,
        &connection_is_held, &connection_has_hurried, &connection_fault, &connection_decoder, &connection_handle,
        &connection_transport, &connection_traffic, &connection_has_received, &connection_is_suspended,
        &connection_session}},
    [KNOWN_BATCH] = {"iproto_server.server.connection.group_commit", "Batch", {
        &batch_connections, &batch_is_scheduled}},
    [KNOWN_CATALOG] = {"iproto_server.box.catalog.catalog", "Catalog", {&catalog_spaces, &catalog_schema_version}},
    [KNOWN_CALLS] = {"iproto_server.server.requests.call", "Calls", {&calls_by_name}},
};

static PyTypeObject *find(int place)
{
    PyTypeObject *type = find_class(classes[place].module, classes[place].name, NULL, 0);
    for (Slot *const *slot = classes[place].slots; type && *slot; slot++)
        if (find_slots((PyObject *)type, *slot, 1) < 0)
            Py_CLEAR(type);
    return type;
}

int know_class(int place)
{
    return known[place] || (known[place] = find(place)) ? 0 : -1;
}

int know_classes(void)
{
    for (int place = 0; place < KNOWN_COUNT; place++)
        if (know_class(place) < 0)
            return -1;
    return 0;
}
