"""From frames to requests.

Compiled code decodes them: it checks what Tarantool checks, and refuses frames with Tarantool's texts.
"""

from __future__ import annotations

from iproto_server.errors import BoxError
from iproto_server.native._native import Request, decode_request, set_hook

__all__ = ["Request", "RequestError", "decode_request"]


class RequestError(BoxError):
    """A frame is not a request. The connection goes on.

    Parameters:
        sync: The number to answer with, 0 if the fault came before it.
        code: A member of `ErrorCode`.
        args: What goes into the error's text.

    Attributes:
        sync: The number to answer with.
    """

    sync: int

    def __init__(self, sync: int, code: int, *args: object) -> None:
        super().__init__(code, *args)
        self.sync = sync


set_hook("request_error", RequestError)
