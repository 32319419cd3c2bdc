/* Sessions and their users: base classes of Credentials, Session and SessionFacade. */
#ifndef IPROTO_SERVER_SESSIONS_H
#define IPROTO_SERVER_SESSIONS_H

#include "../module/module.h"

extern PyTypeObject Credentials_Type, Session_Type, Sessions_Type;
typedef struct {
    PyObject_HEAD
    unsigned long universe;
} CredentialsObject;
typedef struct {
    PyObject_HEAD
    PyObject *id, *credentials;
    unsigned long long sync;
} SessionObject;
typedef struct {
    PyObject_HEAD
    PyObject *current, *background;
} SessionsObject;
/* Whether the session's user has these privileges, a sum of bits, on the universe. */
enum { PRIVILEGE_READ = 1, PRIVILEGE_WRITE = 2, PRIVILEGE_EXECUTE = 4, PRIVILEGE_USAGE = 16 };
int may_everything(const SessionObject *session, unsigned long privileges);

#endif
