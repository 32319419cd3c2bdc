"""UPDATE and UPSERT: the operations = ! # + - & | ^ : on the msgpack bytes of a tuple.

There are two stages; an UPSERT that inserts needs only the first. `operation` parses operations and refuses
malformed ones, independently of the tuple. `execute` applies them; unchanged fields and assigned values are
copied byte for byte. `tree` represents a tuple during the update, with `map_pairs` for the pairs of a map,
`path_cursor` the position of an operation on its path, `document` unchanged fields that paths lead into, and
`value` computes new values from old ones.
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
