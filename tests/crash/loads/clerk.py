"""The load of a sequence: rows that it numbers are inserted and deleted, including the newest ones."""

from __future__ import annotations

from random import Random

from tests.crash import schema
from tests.crash.books.numbering import Numbering
from tests.crash.checks.finding import Kind
from tests.crash.loads.client import Client, Meter
from tests.crash.servers.pipeline import Pipeline, Reply
from tests.iproto_client import DELETE, INDEX_ID, INSERT, KEY, SPACE_ID, TUPLE

ROWS_MAX = 200
"""The approximate maximum number of rows."""


class Clerk(Client):
    """Inserts rows without a number.

    Parameters:
        chance: The source of random values.
        numbering: The expected numbered rows.
    """

    def __init__(
        self, pipeline: Pipeline, meter: Meter, window: int, chance: Random, numbering: Numbering
    ) -> None:
        super().__init__(pipeline, meter, window)
        self._chance = chance
        self._numbering = numbering

    def step(self) -> None:
        """Insert a row or delete one."""
        present = self._numbering.present
        if present and (len(present) > ROWS_MAX or self._chance.random() < 0.3):
            self._delete(present[-1] if self._chance.random() < 0.5 else self._chance.choice(present))
        else:
            self._insert()

    def _insert(self) -> None:
        token = self._numbering.insert()

        def answered(reply: Reply) -> None:
            if reply.error_code:
                self._complain(reply)
            else:
                self.meter.findings += self._numbering.inserted(reply.data[0])
                self.meter.acknowledge("numbered insert")

        body = {SPACE_ID: schema.NUMBERED_ID, TUPLE: [None, token]}
        self.send("numbered insert", INSERT, body, answered)

    def _delete(self, number: int) -> None:
        self._numbering.delete(number)

        def answered(reply: Reply) -> None:
            if reply.error_code:
                self._complain(reply)
            else:
                self._numbering.deleted(number)
                self.meter.acknowledge("numbered delete")

        self.send(
            "numbered delete", DELETE, {SPACE_ID: schema.NUMBERED_ID, INDEX_ID: 0, KEY: [number]}, answered
        )

    def _complain(self, reply: Reply) -> None:
        self.meter.complain(Kind.ANSWER, f"a numbered row: error {reply.error_code} ({reply.data})")
