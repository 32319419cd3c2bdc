"""Reads spaces with asynctnt page by page: `bench.lib.query_process` describes its input and output.

echo '{"url": "127.0.0.1:3301", "space": "queue", "page_rows": 1000}' | python -m bench.client.asynctnt_pages
"""

from __future__ import annotations

from typing import Any

import asynctnt
import uvloop

from bench.lib.query_process import Answer, answer_queries


async def read(url: str, space: str, page_rows: int) -> int:
    """Read all rows, which asynctnt decodes, and return their number.

    Parameters:
        url: the server's host and port.
        space: the name of the space, whose primary key is its first field.
        page_rows: the maximum number of rows of a response.
    """
    host, _, port = url.rpartition(":")
    rows = 0
    async with asynctnt.Connection(host=host, port=int(port)) as connection:
        page = await connection.select(space, limit=page_rows)
        while page:
            rows += len(page)
            page = await connection.select(space, [page[-1][0]], iterator="GT", limit=page_rows)
    return rows


def main() -> None:
    """Read until the end of standard input."""

    def read_all(query: dict[str, Any]) -> Answer:
        return {"rows": uvloop.run(read(**query))}

    answer_queries(read_all)


if __name__ == "__main__":
    main()
