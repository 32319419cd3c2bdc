"""A consumer of the tutorial's queue, with tarantool-python.

    iproto-server serve queue_lua_compat.tutorial:app
    python examples/consumer.py 127.0.0.1:3301

It takes tasks until none arrives for the given time. A failed task is released with a delay and delivered
again later. If the consumer dies, the server returns its task to the queue.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import tarantool


def consume(
    connection: tarantool.Connection, handle: Callable[[Any], None], patience: float, retry_after: float
) -> int:
    """Process tasks until none arrives.

    Parameters:
        connection: a connection to the server.
        handle: called with the data of each task; raises OSError if the task has to be repeated.
        patience: seconds to wait for a task.
        retry_after: seconds after which a failed task is delivered again.

    Returns:
        The number of acknowledged tasks.
    """
    count = 0
    while True:
        answer = connection.call("queue.take", [patience]).data
        if not answer:
            return count
        task = answer[0]
        try:
            handle(task["data"])
        except OSError as error:
            print("failed:", error)
            connection.call("queue.release", [task["id"], {"delay": retry_after}])
        else:
            connection.call("queue.ack", [task["id"]])
            count += 1


def main() -> None:
    """Read the command line and consume."""
    parser = argparse.ArgumentParser(description="Consume tasks of the tutorial's queue.")
    parser.add_argument("address", nargs="?", default="127.0.0.1:3301", help="HOST:PORT of the server")
    parser.add_argument("--patience", type=float, default=5, help="seconds to wait for a task (5)")
    parser.add_argument("--retry-after", type=float, default=60, help="seconds until a failed task returns")
    arguments = parser.parse_args()
    host, _, port = arguments.address.rpartition(":")
    connection = tarantool.Connection(host, int(port))
    count = consume(connection, lambda data: print("task:", data), arguments.patience, arguments.retry_after)
    print("acknowledged:", count)
    connection.close()


if __name__ == "__main__":
    main()
