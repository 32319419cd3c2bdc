"""What UPDATE and UPSERT do to a tuple: the operations = ! # + - & | ^ : on its msgpack bytes.

Two stages, as an UPSERT that inserts needs the first one only. `operation` reads operations and refuses what
is malformed whatever the tuple. `execute` applies them: whatever an operation does not name is copied byte
for byte, and so is what it assigns. In between, `tree` is a tuple while it is being changed, `path_cursor` an
operation on its way into it, `document` an unchanged field that paths lead into, and `value` computes new
values from old ones.
"""

from iproto_server.box.update.execute import apply_update, apply_upsert
from iproto_server.box.update.node import NO_DOUBLES, Doubles
from iproto_server.box.update.operation import Operation, Operations, operations_from_python, parse_update

__all__ = [
    "NO_DOUBLES",
    "Doubles",
    "Operation",
    "Operations",
    "apply_update",
    "apply_upsert",
    "operations_from_python",
    "parse_update",
]
