"""The position of an operation on its path into a tuple."""

from __future__ import annotations

from iproto_server.box.types.json_path import JsonToken, TokenKind
from iproto_server.box.update.document import Documents
from iproto_server.box.update.errors import field_error, field_text
from iproto_server.box.update.operation import Operation
from iproto_server.errors import BoxError, ErrorCode


class PathCursor:
    """An operation, and the part of its path that was followed.

    Attributes:
        operation: the operation.
        documents: the unchanged fields of this request.
        field_no: the top-level field; counted from the start once the number of fields is known.
        position: the number of tokens that were followed.
    """

    __slots__ = ("_unread_symbols", "documents", "field_no", "operation", "position")

    def __init__(self, operation: Operation, documents: Documents, position: int = 0) -> None:
        self.operation = operation
        self.documents = documents
        self.field_no = operation.field_no
        self.position = position
        self._unread_symbols = 0

    @property
    def has_arrived(self) -> bool:
        """True if the operation's target is reached."""
        return self.operation.tokens[self.position].kind is TokenKind.END

    def peek(self) -> JsonToken:
        """Return the next token; END at the end of the path.

        Raises:
            BoxError: the path is malformed here.
        """
        return self.token_at(self.position)

    def token_at(self, position: int) -> JsonToken:
        """As `peek`, for another position."""
        token = self.operation.tokens[position]
        if token.kind is TokenKind.FAULT:
            raise self.bad_json(token.end)
        return token

    def starts_with(self, tokens: tuple[JsonToken, ...], path: str) -> bool:
        """Tell whether the next tokens equal `tokens` of `path`, including their spelling."""
        count = len(tokens)
        mine = self.operation.tokens[self.position : self.position + count]
        own_path = self.operation.path
        if own_path is None or [token.target for token in mine] != [token.target for token in tokens]:
            return False
        return own_path[mine[0].start : mine[-1].end] == path[tokens[0].start : tokens[-1].end]

    def skip(self, count: int) -> None:
        """Skip `count` tokens.

        Tarantool does not count their symbols in the positions of later faults.
        """
        tokens = self.operation.tokens
        start = tokens[self.position].start
        self.position += count
        self._unread_symbols += tokens[self.position - 1].end - start

    @property
    def field(self) -> str:
        """The field, for messages."""
        return field_text(self.field_no, self.operation.path)

    def bad_json(self, position: int) -> BoxError:
        """Return the error for a path that is malformed at a 1-based position."""
        return self.error(f"invalid JSON in position {position - self._unread_symbols}")

    def unexpected_any(self, token: JsonToken) -> BoxError:
        """Return the error for a `[*]` in place of a single field."""
        return self.bad_json(token.end - 1)

    def error(self, reason: str) -> BoxError:
        """Return the error for a field that cannot be updated."""
        return field_error(self.field, reason)

    def double_update(self) -> BoxError:
        """Return the error for a second change of the same field in one request."""
        return self.error("double update of the same field")

    def inside_replaced(self) -> BoxError:
        """Return the error for a path into a value that another operation of the request has set or deleted.

        (Tarantool 2.6.0 reads invalid memory in this case.)
        """
        return self.double_update()

    def no_such_field(self) -> BoxError:
        """Return the error for a missing field."""
        if self.operation.path is None:
            number = self.field_no + 1 if self.field_no >= 0 else self.field_no
            return BoxError(ErrorCode.NO_SUCH_FIELD_NO, number)
        return BoxError(ErrorCode.NO_SUCH_FIELD_NAME, self.field)
