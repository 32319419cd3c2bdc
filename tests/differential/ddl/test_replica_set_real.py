"""Rows of `_schema` and `_cluster` on a real Tarantool and on our server."""

from __future__ import annotations

import pytest

from tests.differential.both import Both
from tests.differential.ddl.system_rows import Request, delete, insert, replace, select, update, upsert

SCHEMA, CLUSTER = 272, 320
SOMEBODY, ANYBODY = "11111111-1111-4111-8111-11111111111a", "11111111-1111-4111-8111-11111111111b"
NIL = "00000000-0000-0000-0000-000000000000"
OWN_ID = 1

CASES: dict[str, list[Request]] = {
    "the replica set's UUID goes": [delete(SCHEMA, "cluster")],
    "it changes": [replace(SCHEMA, ["cluster", SOMEBODY]), select(SCHEMA, "cluster")],
    "it is updated": [update(SCHEMA, ["cluster"], ["=", 1, ANYBODY]), select(SCHEMA, "cluster")],
    "it is no UUID": [replace(SCHEMA, ["cluster", "x"])],
    "it is of no known variant": [replace(SCHEMA, ["cluster", "11111111-1111-4111-f111-111111111111"])],
    "it is nil": [replace(SCHEMA, ["cluster", NIL])],
    "it comes again": [insert(SCHEMA, ["cluster", SOMEBODY])],
    "a key ends at NUL": [replace(SCHEMA, ["cluster\0", "x"])],
    "another key": [replace(SCHEMA, ["clusters", "x"]), delete(SCHEMA, "clusters")],
    "a key without a value": [replace(SCHEMA, ["clusters"]), delete(SCHEMA, "clusters")],
    "the own row goes": [delete(CLUSTER, OWN_ID)],
    "the own row changes": [replace(CLUSTER, [OWN_ID, SOMEBODY])],
    "the own row gets no UUID": [replace(CLUSTER, [OWN_ID, "x"])],
    "the own row gets another field": [update(CLUSTER, [OWN_ID], ["=", 2, "more"])],
    "the own row comes again": [insert(CLUSTER, [OWN_ID, SOMEBODY])],
    "nobody's row goes": [delete(CLUSTER, 7)],
    "the id 0": [insert(CLUSTER, [0, SOMEBODY])],
    "the id 0, and no UUID": [insert(CLUSTER, [0, "x"])],
    "the greatest id": [insert(CLUSTER, [31, SOMEBODY])],
    "an id above": [insert(CLUSTER, [32, SOMEBODY])],
    "an id above, and no UUID": [insert(CLUSTER, [2**32 - 1, "x"])],
    "no UUID": [insert(CLUSTER, [5, "x"])],
    "an empty UUID": [insert(CLUSTER, [5, ""])],
    "a number": [insert(CLUSTER, [5, 5])],
    "no field": [insert(CLUSTER, [5])],
    "the nil UUID": [insert(CLUSTER, [5, NIL])],
    "a UUID and more": [insert(CLUSTER, [5, SOMEBODY, "more"])],
    "a UUID that is another's": [insert(CLUSTER, [5, SOMEBODY]), insert(CLUSTER, [6, SOMEBODY])],
    "a row twice": [insert(CLUSTER, [5, SOMEBODY]), insert(CLUSTER, [5, ANYBODY])],
    "another UUID": [insert(CLUSTER, [5, SOMEBODY]), replace(CLUSTER, [5, ANYBODY])],
    "the same UUID": [insert(CLUSTER, [5, SOMEBODY]), replace(CLUSTER, [5, SOMEBODY])],
    "the same UUID in capitals": [insert(CLUSTER, [5, SOMEBODY]), replace(CLUSTER, [5, SOMEBODY.upper()])],
    "no UUID any more": [insert(CLUSTER, [5, SOMEBODY]), update(CLUSTER, [5], ["=", 1, "x"])],
    "another field": [insert(CLUSTER, [5, SOMEBODY]), update(CLUSTER, [5], ["=", 2, "more"])],
    "upserted": [upsert(CLUSTER, [5, SOMEBODY]), upsert(CLUSTER, [5, SOMEBODY], ["=", 1, ANYBODY])],
    "somewhere else": [insert(CLUSTER, [5, SOMEBODY]), delete(CLUSTER, 5), insert(CLUSTER, [6, SOMEBODY])],
}


@pytest.mark.parametrize("case", CASES)
def test_both_answer_alike(both: Both, case: str) -> None:
    try:
        for request in CASES[case]:
            both.request(request.kind, request.body)
        for member in (5, 6, 31):
            both.request(*_asked(select(CLUSTER, member)))
    finally:
        for client in (both.ours, both.theirs):
            for member in (5, 6, 31):
                client.request(*_asked(delete(CLUSTER, member)))


def test_the_instance_tells_the_uuid_that_is_set(both: Both) -> None:
    both.request(*_asked(replace(SCHEMA, ["cluster", ANYBODY])))
    for client in (both.ours, both.theirs):
        (info,) = client.call("box.info").data
        assert info["cluster"]["uuid"] == ANYBODY


def _asked(request: Request) -> tuple[int, dict[int, object]]:
    return request.kind, request.body
