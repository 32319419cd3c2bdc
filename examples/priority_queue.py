"""A queue of one's own: tasks by priority, taken by one connection at a time.

    iproto-server serve examples.priority_queue:app --work-dir ./data

Clients call `work.put(data, priority)`, `work.take(timeout)`, `work.done(id)` and `work.give_back(id)`.
The smallest priority is served first. Tasks return to the queue when their connection closes or the server
restarts.
"""

from __future__ import annotations

from iproto_server import STILL_WAITING, Application, Box, BoxError, Tuple, Waiter, WaitQueue

NOBODY = 0
"""The owner of a task that can be taken; session ids start at 1."""


class PriorityQueue:
    """The queue and the calls that wait for its tasks.

    Parameters:
        application: the application whose setup and procedures it provides.
    """

    waiting: WaitQueue

    def __init__(self, application: Application) -> None:
        application.setup(self.setup)
        for procedure in (self.put, self.take, self.done, self.give_back):
            application.procedure(f"work.{procedure.__name__}")(procedure)

    def setup(self, box: Box) -> None:
        """Create the space and return tasks of the previous run to the queue."""
        tasks = box.schema.create_space(
            "work",
            format=[("id", "unsigned"), ("owner", "unsigned"), ("priority", "integer"), ("data", "any")],
            if_not_exists=True,
        )
        tasks.create_index("primary", parts=["id"], sequence=True, if_not_exists=True)
        tasks.create_index("order", parts=["owner", "priority", "id"], if_not_exists=True)
        self.waiting = box.keep("work.waiting", lambda: WaitQueue(box))
        self.waiting.resume_with(lambda: self._take_first(box))
        if box.generation == 1:  # a reload keeps sessions and their tasks
            for task in tasks.index.order.select([NOBODY], iterator="GT"):
                if task["owner"] != NOBODY:
                    tasks.update(task["id"], [("=", "owner", NOBODY)])
        box.session.on_disconnect(lambda: self._release_all(box))

    def put(self, box: Box, data: object, priority: int = 0) -> Tuple:
        """Add a task."""
        self.waiting.wake()  # takes effect after the commit
        return box.space.work.insert([None, NOBODY, priority, data])

    def take(self, box: Box, timeout: float = 0) -> Tuple | Waiter | None:
        """Take the first task, waiting up to `timeout` seconds for one."""
        task = self._take_first(box)
        if isinstance(task, Tuple):
            return task
        return self.waiting.park(timeout) if timeout > 0 else None

    def done(self, box: Box, task_id: int) -> Tuple | None:
        """Remove a task that the caller has taken."""
        self._check_owner(box, task_id)
        return box.space.work.delete(task_id)

    def give_back(self, box: Box, task_id: int) -> Tuple | None:
        """Return a task that the caller has taken to the queue."""
        self._check_owner(box, task_id)
        self.waiting.wake()
        return box.space.work.update(task_id, [("=", "owner", NOBODY)])

    def _take_first(self, box: Box) -> object:
        task = box.space.work.index.order.first([NOBODY])
        if task is None:
            return STILL_WAITING
        return box.space.work.update(task["id"], [("=", "owner", box.session.id())])

    def _check_owner(self, box: Box, task_id: int) -> None:
        task = box.space.work.get(task_id)
        if task is None or task["owner"] != box.session.id():
            raise BoxError.procedure(f"task {task_id} is not taken by this connection")

    def _release_all(self, box: Box) -> None:
        tasks = box.space.work.index.order.select([box.session.id()])
        for task in tasks:
            box.space.work.update(task["id"], [("=", "owner", NOBODY)])
        if tasks:
            self.waiting.wake(len(tasks))


app = Application("work")
queue = PriorityQueue(app)
