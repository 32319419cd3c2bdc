"""A real Tarantool and our server with the same contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Final

import msgpack

from tests.differential.ddl.system_rows import SPACE, a_space, delete, insert, set_field
from tests.differential.random.answer import Answer, Reply
from tests.differential.random.application import INDEX_FAULTS, LUA
from tests.differential.random.catalog import Catalog
from tests.differential.random.request import Request
from tests.differential.random.sessions import Sessions
from tests.iproto_client import CALL, DATA, FUNCTION_NAME, TUPLE
from tests.real_tarantool import RealTarantool
from tests.running_server import RunningServer

APPLICATION: Final = "tests.differential.random.application:app"
OPTIONS: Final = ["--checkpoint-interval", "0"]
_SPARE_SPACE: Final = 32000
INDEX_CHECK: Final = Request(CALL, {FUNCTION_NAME: INDEX_FAULTS, TUPLE: []}, user="admin")
"""The request that checks our server after each case."""


class TarantoolGone(Exception):
    """The real Tarantool has ended or does not answer: its memory is corrupt."""


class Servers:
    """Both servers.

    Between two cases both have the same rows in their system spaces and count the schema's version from the
    same number.

    Attributes:
        our_files: The directory of our server's files.

    Parameters:
        directory: An empty directory for their files.
        world: Their initial contents; sent to both after they start.
        tell: Called with a line when a server is restarted.
        is_logged: Whether our server writes a log.
    """

    def __init__(
        self,
        directory: Path,
        world: Sequence[Request] = (),
        tell: Callable[[str], None] = lambda line: None,
        *,
        is_logged: bool = False,
    ) -> None:
        self._wal_mode = "write" if is_logged else "none"
        self._directory = directory
        self._world = world
        self._tell = tell
        self._started = 0
        self._start()

    def _start(self) -> None:
        self._started += 1
        places = [self._directory / f"{name}-{self._started}" for name in ("tarantool", "ours")]
        for place in places:
            place.mkdir(parents=True)
        self._theirs = RealTarantool(places[0], LUA)
        self._ours = RunningServer(places[1], [APPLICATION], [*OPTIONS, "--wal-mode", self._wal_mode])
        self.our_files = places[1]
        self.theirs = Sessions(self._theirs.host, self._theirs.port)
        self.ours = Sessions(self._ours.host, self._ours.port)
        ours, theirs = self.ask(self._world)
        for request, mine, other in zip(self._world, ours, theirs, strict=False):
            assert mine.status == other.status == 0, f"{request}\nours: {mine}\ntheirs: {other}"
        self._catalogs = [Catalog(self.ours), Catalog(self.theirs)]
        self._align_versions()

    def ask(self, requests: Sequence[Request]) -> tuple[list[Reply], list[Reply]]:
        """Send requests to both servers concurrently.

        Parameters:
            requests: The requests; each is executed before one of another user is sent.

        Returns:
            Our answers and theirs: to each request, with one to a PING after those of each user.

        Raises:
            TarantoolGone: The real Tarantool does not answer.
        """
        ours: list[Reply] = []
        theirs: list[Reply] = []
        for user, group in groupby(requests, key=lambda request: request.user):
            batch = list(group)
            try:
                self.theirs.send(user, batch)
            except ConnectionRefusedError:
                # it ended after its last answer
                raise TarantoolGone from None
            self.ours.send(user, batch)
            theirs += self.theirs.receive(user)
            if not isinstance(theirs[-1], Answer) and not self._theirs_lives():
                raise TarantoolGone
            ours += self.ours.receive(user)
        return ours, theirs

    def index_faults(self) -> list[str]:
        """Return faults of our indexes, now or after any DDL since the last call."""
        if not self._ours.process.running:
            return []
        answer = self.ours.ask([INDEX_CHECK], "admin")[0]
        assert isinstance(answer, Answer), answer
        assert not answer.status, answer
        faults: list[str] = msgpack.unpackb(answer.body, strict_map_key=False)[DATA][0]
        return faults

    def restore(self) -> bool:
        """Restore the state before the case.

        Returns:
            Whether these are still the same servers.
        """
        try:
            is_restored = self._ours.process.running and all(catalog.restore() for catalog in self._catalogs)
        except (AssertionError, OSError):
            if self._theirs_lives():
                raise
            self.restart("the real one is gone after its last answer")
            return False
        if not is_restored:
            self.restart("the system spaces do not become what they were")
        else:
            self._align_versions()
        return is_restored

    def restart(self, reason: str) -> None:
        """Start two new servers.

        Parameters:
            reason: The reason, which is reported.
        """
        self._tell(f"starting both servers again: {reason}")
        self._end()
        self._start()

    def stop(self) -> None:
        """Stop both."""
        self._end()

    def _end(self) -> None:
        for sessions in (self.ours, self.theirs):
            sessions.close_all()
        self._theirs.process.kill()
        with suppress(AssertionError):
            self._ours.stop()

    def _theirs_lives(self) -> bool:
        """Whether the real Tarantool still answers."""
        if not self._theirs.process.running:
            return False
        with suppress(OSError):
            return isinstance(self.theirs.ask([], "admin")[-1], Answer)
        return False

    def _align_versions(self) -> None:
        """Make the schema versions equal, by changes of `_space` that leave nothing behind."""
        versions = []
        for sessions in (self.ours, self.theirs):
            answer = sessions.ask([], "admin")[-1]
            assert isinstance(answer, Answer), answer
            versions.append(answer.schema_version)
        difference = versions[0] - versions[1]
        behind, ahead = (self.theirs, self.ours) if difference > 0 else (self.ours, self.theirs)
        missing = abs(difference)
        if missing % 2:
            # one change too many on that server, if an odd number cannot be made of pairs
            behind.ask(list(_version_rises(3)), "admin")
            missing -= 3
            if missing < 0:
                ahead.ask(list(_version_rises(2)), "admin")
                missing += 2
        behind.ask(list(_version_rises(missing)), "admin")


def _version_rises(count: int) -> Iterator[Request]:
    """Build requests that increment the schema version."""
    for pair in range(count // 2):
        yield Request.of(insert(SPACE, a_space(_SPARE_SPACE, name="spare")), "admin")
        if pair == 0 and count % 2:
            yield Request.of(set_field(SPACE, [_SPARE_SPACE], 2, "renamed"), "admin")
        yield Request.of(delete(SPACE, _SPARE_SPACE), "admin")
