"""The description of the API in the form of OpenAPI 3.1."""

from __future__ import annotations

from typing import Any, Final

from iproto_server.managed_queue import TaskState
from iproto_server.program_version import PROGRAM_VERSION
from iproto_server.server.schedules.schedule import Missed

_Json = dict[str, Any]


def _of(kind: str, **more: object) -> _Json:
    return {"type": kind, **more}


def _object(*required: str, **properties: object) -> _Json:
    return _of("object", properties=properties, required=list(required), additionalProperties=False)


def _parameter(name: str, schema: _Json, description: str, place: str = "query") -> _Json:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "schema": schema,
        "description": description,
    }


_TEXT: Final = _of("string")
_NUMBER: Final = _of("number")
_IDS: Final = _of("array", items={"oneOf": [_TEXT, _of("integer")]}, minItems=1, maxItems=1000)
_NAME: Final = _parameter("name", _TEXT, "name of the queue; a slash in it is sent as %2F", "path")
_ID: Final = _parameter("id", _TEXT, "id of the task", "path")
_STATE: Final = _of("string", enum=[state.value for state in TaskState])
_LIMIT: Final = _parameter("limit", _of("integer", minimum=1, maximum=1000), "maximum number")
_TASK: Final = _of(
    "object",
    description="A task. Times are in seconds since 1970.",
    properties={
        "id": _TEXT,
        "state": _STATE,
        "data": {"description": "the payload; integers beyond 2^53 and what JSON lacks are texts"},
        "created": {"type": ["number", "null"]},
        "due": {"type": ["number", "null"]},
        "session": {"type": ["integer", "null"]},
        "taken_at": {"type": ["number", "null"], "description": "when its consumer took it"},
        "touched_at": {"type": ["number", "null"], "description": "when that last asked for more time"},
        "details": _of("object"),
    },
)
_TASKS: Final = _of("array", items=_TASK)
_SCHEDULE_NAME: Final = _parameter("name", _TEXT, "name of the schedule", "path")
_DEFINITION: Final = {
    "queue": {**_TEXT, "description": "name of the queue"},
    "cron": {**_TEXT, "description": "cron expression of 5 fields, or 6 with the second first"},
    "timezone": {**_TEXT, "description": "name of an IANA time zone", "default": "UTC"},
    "missed": {**_of("string", enum=[policy.value for policy in Missed]), "default": "latest"},
    "data": {"description": "the payload of each task"},
    "options": {**_of("object"), "description": "options of each put"},
}
_SCHEDULE: Final = _of(
    "object",
    description="A schedule. Times are in seconds since 1970.",
    properties={
        "name": _TEXT,
        **_DEFINITION,
        "next_due": {"type": ["integer", "null"]},
        "last_due": {"type": ["integer", "null"]},
        "last_put": {"type": ["number", "null"]},
        "last_task": {"type": ["string", "null"]},
        "last_error": {"type": ["string", "null"]},
        "failed_at": {"type": ["number", "null"]},
    },
)


def _operation(
    summary: str,
    result: _Json,
    body: _Json | None = None,
    parameters: tuple[_Json, ...] = (),
    is_open: bool = False,
) -> _Json:
    error = {"$ref": "#/components/responses/Error"}
    operation: _Json = {
        "summary": summary,
        "responses": {
            "200": {"description": "done", "content": {"application/json": {"schema": result}}},
            "default": error,
        },
    }
    if parameters:
        operation["parameters"] = list(parameters)
    if body is not None:
        content = {"application/json": {"schema": body}}
        operation["requestBody"] = {"required": True, "content": content}
    if is_open:
        operation["security"] = []
    return operation


def _repair(summary: str) -> _Json:
    return {
        "post": _operation(summary, _object("tasks", tasks=_TASKS), _object("ids", ids=_IDS), (_NAME,)),
    }


def _change(summary: str) -> _Json:
    return {"post": _operation(summary, _of("object"), _object(), (_NAME,))}


_LOGGED_IN: Final = _object(
    "user", "may", "instance", user=_TEXT, may=_of("array", items=_TEXT), instance=_TEXT
)

OPENAPI: Final[_Json] = {
    "openapi": "3.1.0",
    "info": {
        "title": "iproto-server",
        "version": PROGRAM_VERSION,
        "description": "Queues for operators. Reading needs the right `read` on the universe, and repairs"
        " need `write` as well.",
    },
    "security": [{"cookie": []}],
    "paths": {
        "/api/login": {
            "post": _operation(
                "Log in with a user's password or with the token of a link; sets the cookie.",
                _LOGGED_IN,
                {
                    "oneOf": [
                        _object("user", "password", user=_TEXT, password=_TEXT),
                        _object("token", token=_TEXT),
                    ]
                },
                is_open=True,
            )
        },
        "/api/logout": {"post": _operation("Log out.", _of("object"), _object(), is_open=True)},
        "/api/session": {"get": _operation("Tell who is logged in, and what that user may do.", _LOGGED_IN)},
        "/api/status": {"get": _operation("Describe the server.", _of("object"))},
        "/api/sessions": {
            "get": _operation(
                "List the sessions with the tasks that they have taken.",
                _object("sessions", sessions=_of("array", items=_of("object"))),
                parameters=(_LIMIT,),
            )
        },
        "/api/history": {
            "get": _operation(
                "Return the last hour, a sample every ten seconds.",
                _object(
                    *("interval", "queue", "times", "series"),
                    interval=_NUMBER,
                    queue={"type": ["string", "null"]},
                    times=_of("array", items=_NUMBER),
                    series=_of(
                        "object", additionalProperties=_of("array", items={"type": ["number", "null"]})
                    ),
                ),
                parameters=(_parameter("queue", _TEXT, "name of a queue; without it, the server's sums"),),
            )
        },
        "/api/queues": {
            "get": _operation(
                "List the queues with their figures, in the order of their names.",
                _object("queues", queues=_of("array", items=_of("object"))),
                parameters=(_LIMIT, _parameter("after", _TEXT, "the name after which to begin")),
            )
        },
        "/api/queues/{name}": {
            "get": _operation("Return a queue's figures.", _of("object"), parameters=(_NAME,))
        },
        "/api/queues/{name}/tasks": {
            "get": _operation(
                "List tasks in the order in which they are taken; without a state, in the order of ids.",
                _object("tasks", "next", tasks=_TASKS, next={"type": ["string", "null"]}),
                parameters=(
                    _NAME,
                    _parameter("state", _STATE, "only tasks in this state"),
                    _LIMIT,
                    _parameter("after", _TEXT, "`next` of the page before"),
                    _parameter("older", _NUMBER, "only tasks put, or taken, that many seconds ago"),
                ),
            )
        },
        "/api/queues/{name}/tasks/{id}": {
            "get": _operation("Return a task.", _TASK, parameters=(_NAME, _ID))
        },
        "/api/queues/{name}/put": {
            "post": _operation(
                "Put a task.", _TASK, _object("data", data={}, options=_of("object")), (_NAME,)
            )
        },
        "/api/queues/{name}/kick": {
            "post": _operation(
                "Make buried tasks ready, the first ones first.",
                _object("kicked", kicked=_of("integer")),
                _object(count=_of("integer", minimum=1, maximum=10_000, default=1)),
                (_NAME,),
            )
        },
        "/api/queues/{name}/release": _repair("Make tasks ready that are taken, delayed or buried."),
        "/api/queues/{name}/bury": _repair("Bury tasks."),
        "/api/queues/{name}/delete": _repair("Delete tasks."),
        "/api/queues/{name}/requeue": _repair("Put dead letters back into their queue."),
        "/api/queues/{name}/pause": _change("Stop handing out tasks until it is resumed; consumers wait."),
        "/api/queues/{name}/drain": _change("Refuse new tasks while consumers empty the queue."),
        "/api/queues/{name}/resume": _change("End a queue's pause, or draining."),
        "/api/queues/{name}/configure": {
            "post": _operation(
                "Change options of a queue's policy; null restores an option.",
                _of("object"),
                _object("options", options=_of("object", minProperties=1)),
                (_NAME,),
            )
        },
        "/api/schedules": {
            "get": _operation(
                "List the schedules in the order of their names.",
                _object("schedules", schedules=_of("array", items=_SCHEDULE)),
            )
        },
        "/api/schedules/{name}": {
            "put": _operation(
                "Create or replace a schedule, which puts a task at each due time of a cron expression.",
                _SCHEDULE,
                _object("queue", "cron", **_DEFINITION),
                (_SCHEDULE_NAME,),
            ),
            "delete": _operation(
                "Remove a schedule; its tasks stay.", _SCHEDULE, parameters=(_SCHEDULE_NAME,)
            ),
        },
        "/api/snapshot": {
            "post": _operation(
                "Take a snapshot; the answer comes when it is written.", _of("object"), _object()
            )
        },
    },
    "components": {
        "securitySchemes": {
            "cookie": {"type": "apiKey", "in": "cookie", "name": "iproto-INSTANCE"},
        },
        "responses": {
            "Error": {
                "description": "Refused: 401 without a login, 403 without the right, 404 for unknown names,"
                " 429 with Retry-After after several wrong passwords, or 400.",
                "content": {"application/json": {"schema": _object("error", error=_TEXT)}},
            }
        },
    },
}
