"""The error that every room raises for something a client, a schema or a procedure did wrong.

A :class:`BoxError` is what travels to the client: a number, a text and, for those who ask, the details that
newer clients read from the error stack. Faults of this server itself are ordinary Python exceptions instead.
"""

from collections.abc import Iterator, Mapping
from typing import Self

from iproto_server.error_codes import ErrorCode

__all__ = ["BoxError", "ErrorCode"]

_TYPE_OF_CODE = {
    ErrorCode.PROC_LUA.value: "LuajitError",
    ErrorCode.ACCESS_DENIED.value: "AccessDeniedError",
    ErrorCode.MEMORY_ISSUE.value: "OutOfMemory",
}
_TEMPLATES = {member.value: member.template for member in ErrorCode}
_MESSAGE_MAX = 511
"""Bytes that Tarantool has room for."""
_ACCESS_FIELDS = ("access_type", "object_type", "object_name")


class BoxError(Exception):
    """An error with a number, as clients see it.

    Attributes:
        code: the number; a member of :class:`ErrorCode` or a number of the application's own.
        message: the text.
        type: the name of the error's class in Tarantool, such as ``"ClientError"``.
        fields: details by name, sent in the error stack; the text is complete without them.
        previous: the error that caused this one, or None.
        errno: the operating system's error number where one was involved, else 0.
        file: where the error was raised, for the error stack. Only errors received from elsewhere have it:
            finding it out costs more than the rest of the error.
        line: the line in ``file``.
    """

    code: int
    message: str
    type: str
    fields: dict[str, object]
    previous: "BoxError | None"
    errno: int
    file: str
    line: int

    def __init__(
        self,
        code: int,
        *args: object,
        fields: Mapping[str, object] | None = None,
        previous: "BoxError | None" = None,
    ) -> None:
        """Create the error ``code`` with its own wording.

        Parameters:
            code: a member of :class:`ErrorCode` or its number.
            args: what goes into the wording's gaps, in order.
            fields: details for the error stack. ACCESS_DENIED takes its details from ``args`` by itself.
            previous: the error that caused this one.

        Raises:
            TypeError: ``args`` do not fit the wording: a mistake in the program, not of a client.
        """
        number = int(code)
        template = _TEMPLATES.get(number)
        if template is None:
            template = "Unknown error"
            args = ()
        if args or "%" in template:
            message = template % args
            if "\0" in message:
                # Tarantool's wordings take C strings, which end at a zero byte.
                args = tuple(each.partition("\0")[0] if isinstance(each, str) else each for each in args)
                message = template % args
            if len(message) > _MESSAGE_MAX // 4:
                packed = message.encode("utf-8", "surrogateescape")
                message = packed[:_MESSAGE_MAX].decode("utf-8", "surrogateescape")
        else:
            message = template
        super().__init__(message)
        self.code = number
        self.message = message
        self.type = _TYPE_OF_CODE.get(number, "ClientError")
        self.fields = dict(fields) if fields else {}
        self.previous = previous
        self.errno = 0
        self.file = "iproto_server"
        self.line = 0
        if number == ErrorCode.ACCESS_DENIED.value and not self.fields:
            self.fields = dict(zip(_ACCESS_FIELDS, args, strict=False))

    @classmethod
    def with_message(
        cls,
        code: int,
        message: str,
        *,
        type: str | None = None,
        fields: Mapping[str, object] | None = None,
        previous: "BoxError | None" = None,
    ) -> Self:
        """Create an error whose text is not the wording of its number, as ``box.error{code=, reason=}`` does.

        Parameters:
            code: any number; the application's own are welcome.
            message: the whole text, taken literally.
            type: the name of the error's class; by default the one that belongs to ``code``.
            fields: details for the error stack.
            previous: the error that caused this one.

        Returns:
            The error, to be raised by the caller.
        """
        error = cls.__new__(cls)
        BoxError.__init__(error, ErrorCode.UNKNOWN, fields=fields, previous=previous)
        error.code = int(code)
        error.message = message
        error.args = (message,)
        error.type = type if type is not None else _TYPE_OF_CODE.get(error.code, "ClientError")
        return error

    @classmethod
    def procedure(cls, message: str, *, previous: "BoxError | None" = None) -> Self:
        """Create what a raising procedure becomes: PROC_LUA with exactly the given text.

        Parameters:
            message: the text of whatever the procedure raised.
            previous: the error that caused this one.

        Returns:
            The error, to be raised by the caller.
        """
        return cls.with_message(ErrorCode.PROC_LUA, message, previous=previous)

    def stack(self) -> Iterator["BoxError"]:
        """Walk from this error through its causes, this one first; a cycle is walked only once."""
        seen: set[int] = set()
        error: BoxError | None = self
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            yield error
            error = error.previous

    def __str__(self) -> str:
        """Return the text alone, without the number."""
        return self.message

    def __repr__(self) -> str:
        """Return the number's name and the text."""
        name = ErrorCode(self.code).name if self.code in _TEMPLATES else str(self.code)
        return f"{type(self).__name__}({name}, {self.message!r})"
