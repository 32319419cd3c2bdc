"""The API of the dashboard: JSON over HTTP for logged-in users.

It calls the procedures `operator.…`, which check the user's rights and log repairs. Ids of tasks are texts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response

from iproto_server.box import Waiter
from iproto_server.box.access.session import Session
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.server.application_errors import procedure_error
from iproto_server.server.applications.application_queues import ApplicationQueues
from iproto_server.server.applications.async_procedures import CoroutineRunner
from iproto_server.server.http.history import History
from iproto_server.server.http.json_values import ApiError, json_response, json_text, plain, read_object
from iproto_server.server.http.login import LoginPages
from iproto_server.server.http.openapi import OPENAPI
from iproto_server.server.operators.operator_calls import PREFIX, OperatorCalls

API: Final = "/api/"
_PAGE: Final = 100
_PAGE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a page of tasks after which it ends early."""
_ERROR_MAX: Final = 500
"""Maximum characters of an error."""
_SHOWN: Final = 100
"""Maximum characters of a parameter in an error."""
_NUMBERS: Final[Mapping[str, tuple[re.Pattern[str], Callable[[str], float], str]]] = {
    "limit": (re.compile("[0-9]{1,9}"), int, "an integer from 1 to 1000"),
    "older": (re.compile(r"[0-9]{1,12}(\.[0-9]{1,20})?"), float, "a number of seconds"),
}
"""Parameters that are numbers: their form, their conversion, and what an error calls them."""
_WITH_IDS: Final = ("release", "bury", "delete", "requeue")
_OF_QUEUES: Final = ("pause", "drain", "resume")
_STATUSES: Final = {
    int(ErrorCode.ACCESS_DENIED): 403,
    int(ErrorCode.READONLY): 409,
    int(ErrorCode.PROC_LUA): 400,
    int(ErrorCode.MEMORY_ISSUE): 507,
    int(ErrorCode.WAL_IO): 503,
}
"""HTTP statuses of errors; that of others is 400, too."""

Handler = Callable[[Request], Awaitable[Response]]
Methods = Mapping[str, Handler]
"""The handlers of a path by method."""


class Api:
    """Handles the requests under `/api/`.

    Parameters:
        coroutines: runs transactions, and waits until they are in the log.
        operator: the procedures for operators.
        queues: the queues.
        logins: logins, and their sessions.
        history: the last hour.
    """

    def __init__(
        self,
        coroutines: CoroutineRunner,
        operator: OperatorCalls,
        queues: ApplicationQueues,
        logins: LoginPages,
        history: History,
    ) -> None:
        self._coroutines = coroutines
        self._operator = operator
        self._queues = queues
        self._logins = logins
        self._history = history
        self._handlers: dict[tuple[str, ...], Methods] = {
            ("login",): {"POST": _without_parameters(logins.log_in)},
            ("logout",): {"POST": _without_parameters(logins.log_out)},
            ("session",): {"GET": _without_parameters(logins.session)},
            ("status",): {"GET": self._status},
            ("sessions",): {"GET": self._sessions},
            ("queues",): {"GET": self._list_queues},
            ("schedules",): {"GET": self._list_schedules},
            ("snapshot",): {"POST": self._snapshot},
            ("history",): {"GET": self._show_history},
            ("openapi.json",): {"GET": _without_parameters(self._openapi)},
        }

    async def handle(self, request: Request) -> Response:
        """Answer a request; errors are JSON objects with a text."""
        try:
            methods = self._find(request)
            handler = methods.get("GET" if request.method == "HEAD" else request.method)
            if handler is None:
                allowed = ", ".join(methods)
                return json_response({"error": f"this takes {allowed}"}, 405, {"Allow": allowed})
            return await handler(request)
        except ApiError as error:
            # What clients have sent may be in the text.
            text = error.message if len(error.message) <= _ERROR_MAX else f"{error.message[:_ERROR_MAX]}…"
            return json_response({"error": text}, error.status, error.headers)

    def _find(self, request: Request) -> Methods:
        """Return the handlers of a path. Raises ApiError 404."""
        # The path as it was sent: names of queues may have slashes, as %2F.
        raw: bytes = request.scope["raw_path"]
        parts = tuple(
            unquote_to_bytes(part).decode("utf-8", "surrogateescape")
            for part in raw.partition(b"?")[0].removeprefix(API.encode()).split(b"/")
        )
        found = self._handlers.get(parts)
        if found is not None:
            return found
        if parts[0] == "queues" and len(parts) > 1:
            return self._find_of_queue(parts[1], parts[2:])
        if parts[0] == "schedules" and len(parts) == 2:
            name = parts[1]
            return {
                "PUT": lambda request: self._schedule(request, name),
                "DELETE": lambda request: self._unschedule(request, name),
            }
        raise ApiError(404, "there is no such path; see /api/openapi.json")

    def _find_of_queue(self, name: str, parts: Sequence[str]) -> Methods:
        match parts:
            case []:
                return {"GET": lambda request: self._show_queue(request, name)}
            case ["tasks"]:
                return {"GET": lambda request: self._list_tasks(request, name)}
            case ["tasks", task_id]:
                return {"GET": lambda request: self._show_task(request, name, task_id)}
            case ["put"]:
                return {"POST": lambda request: self._put(request, name)}
            case ["kick"]:
                return {"POST": lambda request: self._kick(request, name)}
            case [action] if action in _WITH_IDS:
                return {"POST": lambda request: self._repair(request, name, action)}
            case [action] if action in _OF_QUEUES:
                return {"POST": lambda request: self._change(request, name, action)}
            case ["configure"]:
                return {"POST": lambda request: self._configure(request, name)}
        raise ApiError(404, "there is no such path; see /api/openapi.json")

    # -- reading --

    async def _status(self, request: Request) -> Response:
        session = self._begin(request)
        return json_response(plain(await self._call(session, "status")))

    async def _sessions(self, request: Request) -> Response:
        session = self._begin(request, "limit")
        options = _options(request, "limit")
        found = await self._call(session, "sessions", options)
        for each in found:
            each["tasks"] = [{**task, "id": str(task["id"])} for task in each["tasks"]]
        return json_response({"sessions": plain(found)})

    async def _list_queues(self, request: Request) -> Response:
        session = self._begin(request, "limit", "after")
        options = _options(request, "limit", "after")
        found = await self._call(session, "queues", options)
        return json_response({"queues": plain(found)})

    async def _show_queue(self, request: Request, name: str) -> Response:
        session = self._begin(request)
        return json_response(plain(await self._call(session, "queue", name)))

    async def _list_tasks(self, request: Request, name: str) -> Response:
        session = self._begin(request, "state", "limit", "after", "older")
        options = _options(request, "state", "limit", "after", "older")
        options.setdefault("limit", _PAGE)
        tasks = await self._call(session, "tasks", name, options)
        shown: list[str] = []
        size = 0
        for task in tasks:
            shown.append(json_text(_task(task)))
            size += len(shown[-1])
            if size > _PAGE_BYTES:
                break
            if len(shown) % 20 == 0:
                await asyncio.sleep(0)  # large payloads take a while
        is_last = len(shown) == len(tasks) < options["limit"]
        following = None if is_last or not shown else str(tasks[len(shown) - 1]["id"])
        page = f'{{"tasks":[{",".join(shown)}],"next":{json_text(following)}}}'
        return Response(page, media_type="application/json")

    async def _show_task(self, request: Request, name: str, task_id: str) -> Response:
        session = self._begin(request)
        task = await self._call(session, "task", name, task_id)
        if task is None:
            raise ApiError(404, f'there is no task {task_id} in the queue "{name}"')
        return json_response(_task(task))

    async def _show_history(self, request: Request) -> Response:
        session = self._begin(request, "queue")
        name = _options(request, "queue").get("queue")
        if name is None:
            await self._call(session, "status")  # checks the rights
        else:
            await self._call(session, "queue", name)
        return json_response(self._history.columns(name))

    async def _list_schedules(self, request: Request) -> Response:
        session = self._begin(request)
        found = await self._call(session, "schedules")
        shown: list[object] = []
        for schedule in found:
            shown.append(_shown_schedule(schedule))
            if len(shown) % 20 == 0:
                await asyncio.sleep(0)  # large payloads take a while
        return json_response({"schedules": shown})

    async def _openapi(self, request: Request) -> Response:
        return json_response(OPENAPI)

    # -- repairs --

    async def _put(self, request: Request, name: str) -> Response:
        session = self._begin(request)
        given = await read_object(request, "data", "options")
        if "data" not in given:
            raise ApiError(400, "data is missing")
        task = await self._call(session, "put", name, given["data"], given.get("options"))
        return json_response(_task(task))

    async def _kick(self, request: Request, name: str) -> Response:
        session = self._begin(request)
        given = await read_object(request, "count")
        return json_response({"kicked": await self._call(session, "kick", name, given.get("count", 1))})

    async def _repair(self, request: Request, name: str, action: str) -> Response:
        session = self._begin(request)
        given = await read_object(request, "ids")
        ids = given.get("ids")
        if not isinstance(ids, list):
            raise ApiError(400, "ids must be a list of ids")
        tasks = await self._call(session, action, name, ids)
        return json_response({"tasks": [_task(task) for task in tasks]})

    async def _change(self, request: Request, name: str, action: str) -> Response:
        session = self._begin(request)
        await read_object(request)
        return json_response(plain(await self._call(session, action, name)))

    async def _configure(self, request: Request, name: str) -> Response:
        session = self._begin(request)
        given = await read_object(request, "options")
        return json_response(plain(await self._call(session, "configure", name, given.get("options"))))

    async def _schedule(self, request: Request, name: str) -> Response:
        session = self._begin(request)
        given = await read_object(request, "queue", "cron", "timezone", "missed", "data", "options")
        return json_response(_shown_schedule(await self._call(session, "schedule", name, given)))

    async def _unschedule(self, request: Request, name: str) -> Response:
        session = self._begin(request)
        return json_response(_shown_schedule(await self._call(session, "unschedule", name)))

    async def _snapshot(self, request: Request) -> Response:
        session = self._begin(request)
        await read_object(request)
        await self._call(session, "snapshot")
        return json_response({})

    # -- internal --

    def _begin(self, request: Request, *parameters: str) -> Session:
        """Return the session of a request with these parameters. Raises ApiError 401, 400."""
        session = self._logins.session_of(request)
        _check_parameters(request, parameters)
        return session

    async def _call(self, session: Session, name: str, *arguments: Any) -> Any:
        """Call a procedure for operators; return its result when it is in the log. Raises ApiError."""
        function = self._operator.functions[PREFIX + name]

        async def call() -> object:
            try:
                result = function(list(arguments))
            except BoxError as error:
                if error.code == ErrorCode.PROC_LUA and self._is_missing(name, arguments):
                    raise ApiError(404, error.message) from error
                raise
            return await result if isinstance(result, Waiter) else result

        try:
            return await self._coroutines.task(session, call())
        except BoxError as error:
            raise ApiError(_STATUSES.get(error.code, 400), error.message) from error
        except ApiError:
            raise
        except Exception as error:  # logged; a fault of the server or of an application
            failure = procedure_error(PREFIX + name, error, session)
            raise ApiError(500, failure.message) from error

    def _is_missing(self, name: str, arguments: Sequence[Any]) -> bool:
        """Whether a refused call is about a queue or a schedule that does not exist."""
        if name in ("queues", "schedule", "schedules"):
            return False
        if name == "unschedule":
            return True
        queue = arguments[0] if arguments else None
        return isinstance(queue, str) and self._queues.find_or_none(queue) is None


def _task(task: dict[str, Any]) -> object:
    return plain({**task, "id": str(task["id"])})


def _shown_schedule(schedule: dict[str, Any]) -> object:
    last = schedule["last_task"]
    return plain({**schedule, "last_task": None if last is None else str(last)})


def _without_parameters(handler: Handler) -> Handler:
    async def handle(request: Request) -> Response:
        _check_parameters(request, ())
        return await handler(request)

    return handle


def _check_parameters(request: Request, names: Sequence[str]) -> None:
    given = [name for name, _ in _parameters(request)]
    for name in given:
        if name not in names:
            known = ", ".join(names) or "none"
            raise ApiError(400, f"there is no parameter {json_text(name)}; the parameters are: {known}")
    if len(set(given)) < len(given):
        raise ApiError(400, "a parameter occurs twice")


def _parameters(request: Request) -> list[tuple[str, str]]:
    query: bytes = request.scope["query_string"]
    try:
        return parse_qsl(
            query.decode("ascii", "replace"),
            keep_blank_values=True,
            errors="surrogateescape",
            max_num_fields=20,
        )
    except ValueError as error:
        raise ApiError(400, f"the parameters cannot be read: {error}") from None


def _options(request: Request, *names: str) -> dict[str, Any]:
    """Return the parameters with the types of options; an empty one is none. Raises ApiError."""
    options: dict[str, Any] = {name: text for name, text in _parameters(request) if text and name in names}
    for name, (form, convert, wanted) in _NUMBERS.items():
        if name in options:
            text = options[name]
            if not form.fullmatch(text):
                raise ApiError(400, f"{name} must be {wanted}, not {json_text(text[:_SHOWN])}")
            options[name] = convert(text)
    return options
