"""One random history: a queue, its clients and their streams, beside the model."""

from __future__ import annotations

import copy
from typing import Any

from iproto_server import BoxError, ErrorCode, Waiter
from tests.queue_lua_compat.streams.model import SECOND
from tests.queue_lua_compat.streams.world import (
    _ENDED,
    TIMEOUTS,
    WAITS,
    Client,
    Done,
    Failure,
    Finding,
    Stream,
    World,
)


class History(World):
    """A random history of a queue with streams."""

    def run(self, steps: int) -> None:
        """Run a number of random steps, and release all tasks at the end."""
        for _ in range(steps):
            self._step()
            self.clock.advance(0)  # run callbacks that are due at once
            self._check()
        self._finish()

    # -- events --

    def _step(self) -> None:
        doing = self._random.choices(
            (
                self._work,
                self._work_in_a_stream,
                self._begin,
                self._commit,
                self._roll_back,
                self._pass_time,
                self._disconnect,
                self._wait,
                self._fail,
                self._lose_log,
                self._reload,
            ),
            (30, 40, 12, 12, 5, 8, 3, 5, 4, 2, 0.5),
        )[0]
        doing()

    def _work(self) -> None:
        client = self._any_client()
        done = self._do(client, lambda function, *arguments: self._plainly(client, function, *arguments))
        self._tell(f"{client.name}: {done.what}{done.arguments} = {done.answer}")
        self._repeat(client.name, done)
        self.model.happen()

    def _work_in_a_stream(self) -> None:
        found = self._any_stream()
        if found is None:
            return
        client, stream = found
        try:
            done = self._do(
                client, lambda function, *arguments: self._inside(client, stream, function, *arguments)
            )
        except BoxError as error:
            self._ended(client, stream, error)
            return
        self._tell(f"{client.name} in {stream.number}: {done.what}{done.arguments} = {done.answer}")
        stream.done.append(done)

    def _begin(self) -> None:
        client = self._any_client()
        if len(client.streams) < 2:
            timeout = self._random.choice(TIMEOUTS)
            self._number += 1
            client.streams.append(Stream(self._number, self.box.interactive.begin(timeout)))
            self._tell(f"{client.name} begins {self._number} for {timeout}")

    def _commit(self) -> None:
        found = self._any_stream()
        if found is None:
            return
        client, stream = found
        assert stream.transaction is not None
        is_writer = stream.is_writer
        try:
            self.box.interactive.commit(stream.transaction)
        except BoxError as error:
            self._ended(client, stream, error)
            return
        client.streams.remove(stream)
        self._tell(f"{client.name} commits {stream.number}")
        self._count("commit")
        if is_writer:
            self._count("commit of changes")
            for done in stream.done:
                self._repeat(client.name, done)
        self.model.serve_as(self._given())

    def _given(self) -> list[Any]:
        """Return the queue's answers to the model's waiting calls, in order."""
        found = [waiter.result for waiter, waiting in self._waiting if not waiting.is_done]
        return self._ids(found[: found.index(None)] if None in found else found)

    def _roll_back(self) -> None:
        found = self._any_stream()
        if found is not None:
            client, stream = found
            self._tell(f"{client.name} rolls back {stream.number}")
            self._give_up(client, stream)
            self._count("rollback")

    def _give_up(self, client: Client, stream: Stream) -> None:
        client.streams.remove(stream)
        if stream.transaction is not None:
            self.box.interactive.roll_back(stream.transaction)

    def _ended(self, client: Client, stream: Stream, error: BoxError) -> None:
        """Handle an error that prevents the transaction from continuing."""
        if error.code not in _ENDED:
            raise error
        name = ErrorCode(error.code).name
        self._tell(f"{client.name}: {stream.number} was ended by {name}")
        self._count(name)
        self._give_up(client, stream)

    def _pass_time(self) -> None:
        seconds = self._random.choice((0.5, 1, 3.5))
        self._tell(f"{seconds} seconds pass")
        self._advance(seconds)

    def _advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.model.advance(seconds)

    def _disconnect(self) -> None:
        client = self._any_client()
        self._tell(f"{client.name} leaves")
        self._count("disconnect")
        self._close(client)
        self.model.leave(client.name)
        self._connect()

    def _close(self, client: Client) -> None:
        """Do as the server does."""
        self.clients.remove(client)
        for stream in list(client.streams):
            self._give_up(client, stream)
        client.session.is_closed = True
        client.session.end()
        for trigger in self.box.session.disconnect_triggers.functions:
            self.box.run(client.session, trigger)
        self.box.session.close(client.session)
        self._waiting = [pair for pair in self._waiting if pair[1].who != client.name]

    def _wait(self) -> None:
        client = self._any_client()
        seconds = self._random.choice(WAITS)
        name, *arguments = self.dialect.take(seconds)
        answer = self._plainly(client, self.dialect.function(name), *arguments)
        self._tell(f"{client.name} waits {seconds}: {isinstance(answer, Waiter)}")
        if isinstance(answer, Waiter):
            self._count("wait")
            self._waiting.append((answer, self.model.wait(client.name, seconds)))
            self.model.serve()
        else:
            self._repeat(client.name, Done("take", self.model.now, (), self._ids([answer])))

    def _fail(self) -> None:
        """Make a call that is rolled back: its procedure fails later, or a trigger refuses the change."""
        client = self._any_client()
        found = self._any_stream()
        is_caught = self._random.random() < 0.5
        name, *arguments = self._failing_call(client if found is None else found[0])
        function = self.dialect.function_of_applications(name)

        def work(*_: object) -> None:
            if is_caught:
                self._fails = True
                try:
                    function(self.box, *arguments)
                except (Failure, BoxError):
                    pass
                finally:
                    self._fails = False
            else:
                function(self.box, *arguments)
                raise Failure

        self._tell(f"{client.name if found is None else found[0].name} fails at {name}{arguments}")
        self._count("failure")
        try:
            if found is None:
                self.box.run(client.session, work)
            else:
                self._inside(*found, work)
        except Failure:
            pass
        except BoxError as error:
            if found is not None and error.code in _ENDED:
                self._ended(*found, error)

    def _failing_call(self, client: Client) -> tuple[Any, ...]:
        what = self._random.choice(("take", "ack", "release", *self.dialect.operations))
        return self.dialect.take(0) if what == "take" else self.dialect.change(what, self._any_id(client), 0)

    def _lose_log(self) -> None:
        """Fail the writes of everything committed since a moment."""
        # Releases that are lost are repeated, even if they become due during another loss.
        if self.model.line or self.model.now < self._given_back_at:
            return
        self._advance(0.2113)
        if not self.model.line:
            before = copy.deepcopy(self.model.tasks)
            self._tell("the log is slow")
            self._count("lost log")
            self.journal.is_slow = True
            gone: list[str] = []
            for _ in range(self._random.randint(1, 6)):
                doing = self._random.choice(
                    (self._work, self._work, self._work_in_a_stream, self._commit, self._close_one)
                )
                if doing == self._close_one:
                    gone.append(self._close_one())
                else:
                    doing()
            self.journal.is_slow = False
            self._tell("the log is lost")
            self.box.transactions.undo(self.box.transactions.take_unwritten())
            self._restore(before, gone)
            # What was due is repeated after a pause of a second, and what becomes due meanwhile waits for it.
            self._advance(1)
        self._advance(0.2887)

    def _close_one(self) -> str:
        client = self._any_client()
        self._tell(f"{client.name} leaves")
        self._close(client)
        self.model.leave(client.name)
        self._connect()
        return client.name

    def _restore(self, tasks: dict[Any, Any], gone: list[str]) -> None:
        """Restore the state; tasks of sessions that have closed meanwhile are released later."""
        self.model.tasks = tasks
        self._given_back_at = self.model.now + SECOND
        for task in tasks.values():
            if task.owner in gone:
                task.owner = None
                task.due = min(task.due, self._given_back_at)

    def _reload(self) -> None:
        self._tell("the code is loaded anew")
        self._count("reload")
        self.dialect.reload()
        self._set_sabotage()

    def _finish(self) -> None:
        """Close all connections; each remaining task can be taken and acknowledged once."""
        self._tell("everybody leaves")
        for client in list(self.clients):
            self._close(client)
            self.model.leave(client.name)
        self._advance(1.5)
        self._check()
        if len(self.box.interactive):
            raise Finding(f"{len(self.box.interactive)} transactions are still open")
        self._advance(30)
        self._check()
        left = [
            task.id
            for task in sorted(self.model.tasks.values(), key=lambda task: task.place)
            if task.status == "r"
        ]
        self._connect()
        [client] = self.clients
        name, *arguments = self.dialect.take(0)
        found = []
        while (answer := self._plainly(client, self.dialect.function(name), *arguments)) is not None:
            if isinstance(answer, Waiter):
                break
            [task_id] = self._ids([answer])
            found.append(task_id)
            ack, *ids = self.dialect.change("ack", task_id, 0)
            self._plainly(client, self.dialect.function(ack), *ids)
        if found != left:
            raise Finding(f"in the end there were {found}, not {left}")
