/* The compiled module: its functions, types and constants. */
#include "../native.h"

/* The same number as in native/__init__.py: it changes when functions or types do, or what they are given. */
#define INTERFACE 36

#ifndef FINGERPRINT
#define FINGERPRINT "" /* of the sources; setup.py defines it */
#endif

typedef PyObject *(*Fast)(PyObject *, PyObject *const *, Py_ssize_t);
#define METHOD(name, function, text) {name, (PyCFunction)(void (*)(void))(Fast)function, METH_FASTCALL, text}

static PyMethodDef functions[] = {
    METHOD("send_outputs", native_send_outputs, "Have connections send all their responses."),
    METHOD("encode_row_head", native_encode_row_head, "Encode the head of a row."),
    METHOD("with_head", native_with_head, "Put a block's head in front of it."),
    METHOD("decode_head", native_decode_head, "Read a block's head."),
    METHOD("decode_request", native_decode_request, "Decode a frame."),
    METHOD("encode_tuples", native_encode_tuples, "Encode a response that carries rows or values."),
    METHOD("encode_result", native_encode_result, "Encode what a procedure returned."),
    METHOD("encode_response", native_encode_response, "Encode a response."),
    METHOD("set_hook", native_set_hook, "Set what compiled code calls."),
    {"as_key", native_as_key, METH_O, "A key as a list."},
    METHOD("as_row", native_as_row, "A row as a space stores it."),
    METHOD("apply_request", native_apply_request, "Apply the operations of a request."),
    METHOD("ensure_stack", native_ensure_stack, "Make sure of room on the stack."),
    METHOD("set_memory_limit", native_set_memory_limit, "Set the limit of the engine's memory."),
    METHOD("memory_allows", native_memory_allows, "Whether there is memory for a row."),
    METHOD("memory_usage", native_memory_usage, "Bytes that the engine holds."),
    METHOD("release_free_memory", native_release_free_memory, "Give free memory back to the system."),
    {"pack", native_pack, METH_O, "Pack a value."},
    {"unpack", native_unpack, METH_O, "Unpack exactly one value."},
    METHOD("skip", native_skip, "Find where a value ends."),
    METHOD("first_items", native_first_items, "Cut the first items out of an array."),
    {"is_valid", native_is_valid, METH_O, "Whether bytes are exactly one value."},
    {"split_array", native_split_array, METH_O, "Cut an array into its items."},
    {"split_map", native_split_map, METH_O, "Cut a map into its pairs."},
    {"array_count", native_array_count, METH_O, "The number of items that an array claims to have."},
    {"map_count", native_map_count, METH_O, "The number of pairs that a map claims to have."},
    {"array_header", native_array_header, METH_O, "The bytes in front of an array's items."},
    {"map_header", native_map_header, METH_O, "The bytes in front of a map's pairs."},
    {"load_lua", native_load_lua, METH_O, "Find LuaJIT's functions."},
    METHOD("lua_attach", native_lua_attach, "Attach Lua code to a box."),
    {"lua_begin", native_lua_begin, METH_NOARGS, "Begin a run of Lua code."},
    {"lua_detach", native_lua_detach, METH_NOARGS, "Detach Lua code from the box."},
    {"lua_end", native_lua_end, METH_NOARGS, "End a run of Lua code."},
    {"long_lua", native_long_lua, METH_NOARGS, "Take the report about a long run of Lua code."},
    {"unwatch_lua", native_unwatch_lua, METH_NOARGS, "End the thread of watch_lua."},
    {"watch_lua", native_watch_lua, METH_VARARGS, "Watch runs of Lua code in a thread."},
    METHOD("memory_outside", native_memory_outside, "Count memory outside of the engine."),
    {NULL},
};

static PyTypeObject *const types[] = {
    &Raw_Type,
    &Tuple_Type,
    &Format_Type,
    &TupleMap_Type,
    &Request_Type,
    &RowKey_Type,
    &ClientKey_Type,
    &RowCheck_Type,
    &Tree_Type,
    &TreeView_Type,
    &FastPath_Type,
    &PendingResult_Type,
    &Procedure_Type,
    &Procedures_Type,
    &Credentials_Type,
    &Session_Type,
    &Sessions_Type,
    &SpaceTable_Type,
    &Scheduler_Type,
    &Batch_Type,
    &Server_Type,
    &Connection_Type,
    &Manager_Type,
    &Transaction_Type,
    &Savepoint_Type,
    &Space_Type,
    &HeldRecord_Type,
    &Triggers_Type,
    &SpaceFacade_Type,
    &IndexFacade_Type,
    &LuaFunction_Type,
    &LuaProcedure_Type,
    &SpacesFacade_Type,
    &IndexesFacade_Type,
    &Traffic_Type,
    &Output_Type,
    &LogRows_Type,
    &LogState_Type,
    &BlockRows_Type,
    &LogReplayer_Type,
    &Frames_Type,
    &FrameDecoder_Type,
    &FrameDecoder15_Type,
    &DictState_Type,
    &TwoWayDict_Type,
    &DictUndo_Type,
    &IncrementalTable_Type,
    &IncrementalDictKeys_Type,
    &Durations_Type,
};

static const struct {
    const char *name;
    long value;
} constants[] = {
    {"REQUESTS_AT_ONCE", REQUESTS_AT_ONCE},
    {"LARGE_ANSWER", LARGE_ANSWER},
    {"WAIT_READER", WAIT_READER},
    {"WAIT_ROOM", WAIT_ROOM},
    {"WAIT_REQUEST", WAIT_REQUEST},
    {"PHASE_SERVING", PHASE_SERVING},
    {"PHASE_HELD", PHASE_HELD},
    {"PHASE_CLOSING", PHASE_CLOSING},
    {"PHASE_DRAINING", PHASE_DRAINING},
    {"PHASE_ENDED", PHASE_ENDED},
    {"PRIVILEGE_READ", PRIVILEGE_READ},
    {"PRIVILEGE_WRITE", PRIVILEGE_WRITE},
    {"PRIVILEGE_EXECUTE", PRIVILEGE_EXECUTE},
    {"PRIVILEGE_USAGE", PRIVILEGE_USAGE},
    {"LARGEST_OPERATION_COUNT", LARGEST_OPERATION_COUNT},
    {"KEY_PARTS_MAX", KEY_PARTS_MAX},
    {"SHORT_KEY", SHORT_KEY},
    {"BLOCK_SIZE", BLOCK_SIZE},
    {"HEAD_SIZE", BLOCK_HEAD_SIZE},
    {"MARKER_SIZE", BLOCK_MARKER_SIZE},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "iproto_server.native._native",
    .m_doc = "The engine's binding, and what the server does for every request.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__native(void)
{
    for (size_t place = 0; place < sizeof types / sizeof *types; place++)
        if (PyType_Ready(types[place]) < 0)
            return NULL;
    if (prepare_statements() < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddType(module, statement_type) < 0)
        Py_CLEAR(module);
    for (size_t place = 0; module && place < sizeof types / sizeof *types; place++)
        if (PyModule_AddType(module, types[place]) < 0)
            Py_CLEAR(module);
    for (size_t place = 0; module && place < sizeof constants / sizeof *constants; place++)
        if (PyModule_AddIntConstant(module, constants[place].name, constants[place].value) < 0)
            Py_CLEAR(module);
    if (module && add_block_markers(module) < 0)
        Py_CLEAR(module);
    if (module && (make_absent() < 0 || PyModule_AddObjectRef(module, "ABSENT", absent) < 0))
        Py_CLEAR(module);
    if (module && (PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0
                   || PyModule_AddStringConstant(module, "FINGERPRINT", FINGERPRINT) < 0))
        Py_CLEAR(module);
    return module;
}
