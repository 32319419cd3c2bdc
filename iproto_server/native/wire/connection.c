/* The compiled methods of Connection (server/connection/connection.py). Requests are in incoming.c, responses in
 * outgoing.c.
 */
#include "../native.h"

enum { DATA_RECEIVED, SEND_OUTPUT, SEND, METHODS };
static Method methods[METHODS];

static int prepare(PyTypeObject *type)
{
    return 0; /* the class is known */
}

METHOD_FUNCTION(method_data_received)
{
    ANSWER(count == 1 && !names ? receive_data(self, args[0]) : NULL, methods[DATA_RECEIVED]);
}

METHOD_FUNCTION(method_send_output)
{
    ANSWER(!count && !names ? send_output(self) : NULL, methods[SEND_OUTPUT]);
}

METHOD_FUNCTION(method_send)
{
    ANSWER(count == 1 && !names ? send_bytes(self, args[0]) : NULL, methods[SEND]);
}

static Method methods[METHODS] = {
    METHOD_ENTRY("data_received", method_data_received, "Carry out every request that is complete now."),
    METHOD_ENTRY("send_output", method_send_output, "Hand all responses to the transport, in one piece."),
    METHOD_ENTRY("_send", method_send, "Hand bytes to the transport."),
};

MethodTable connection_methods = {"Connection", prepare, methods, METHODS};
