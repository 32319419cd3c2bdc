/* Room on Python's stack. */
#include "../native.h"

#define ROOM 100 /* more than Python needs, and enough for the functions of an application that undo something */

int ensure_stack(void)
{
    const PyThreadState *state = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030c0000
    int remaining = state->py_recursion_remaining;
#else
    int remaining = state->recursion_remaining;
#endif
    if (remaining >= ROOM)
        return 0;
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
    return -1;
}

/* ensure_stack() */
FUNCTION(native_ensure_stack)
{
    return count ? PyErr_Format(PyExc_TypeError, "ensure_stack() takes no arguments")
                 : ensure_stack() < 0 ? NULL : Py_NewRef(Py_None);
}
