"""The error for mistakes of clients, schemas and procedures.

A :class:`BoxError` is sent to the client: a number, a text, and the details that newer clients read from the
error stack. Faults of the server itself are ordinary Python exceptions.
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
    """An error with a number, as sent to clients.

    Attributes:
        code: the number: a member of :class:`ErrorCode` or an application's own number.
        message: the text.
        type: the name of the error's class in Tarantool, such as ``"ClientError"``.
        fields: details by name, for the error stack.
        previous: the error that caused this one, or None.
        errno: the operating system's error number, or 0.
        file: the source file, for the error stack. Only errors received from other servers have it, because
            finding it costs more than the rest of the error.
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
        """Create the error ``code`` with its standard text.

        Parameters:
            code: a member of :class:`ErrorCode` or its number.
            args: arguments of the text's placeholders, in order.
            fields: details for the error stack; those of ACCESS_DENIED follow from ``args``.
            previous: the error that caused this one.

        Raises:
            TypeError: ``args`` do not match the placeholders, which is a programming error.
        """
        number = int(code)
        template = _TEMPLATES.get(number)
        if template is None:
            template = "Unknown error"
            args = ()
        if args or "%" in template:
            message = template % args
            if "\0" in message:
                # Tarantool formats C strings, which end at a zero byte.
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
        """Create an error with a text of its own, as ``box.error{code=, reason=}`` does.

        Parameters:
            code: any number, also an application's own.
            message: the text, taken literally.
            type: the name of the error's class; None: that of ``code``.
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
        """Create the error for an exception of a procedure: PROC_LUA with exactly the given text.

        Parameters:
            message: the text of the exception.
            previous: the error that caused this one.

        Returns:
            The error, to be raised by the caller.
        """
        return cls.with_message(ErrorCode.PROC_LUA, message, previous=previous)

    def stack(self) -> Iterator["BoxError"]:
        """Iterate over this error and its causes; a cycle is followed only once."""
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
