"""A link shortener: a space, a sequence, procedures and a counter.

    iproto-server serve examples.short_links:app --work-dir ./data

Clients call `links.add(url)`, `links.visit(id)` and `links.top(count)`.
"""

from __future__ import annotations

from iproto_server import Application, Box, BoxError, Tuple

app = Application("links")


@app.setup
def create_schema(box: Box) -> None:
    """Create the space and its indexes. Runs at every start, in one transaction."""
    links = box.schema.create_space(
        "links",
        format=[("id", "unsigned"), ("url", "string"), ("visits", "unsigned")],
        if_not_exists=True,
    )
    links.create_index("primary", parts=["id"], sequence=True, if_not_exists=True)
    links.create_index("url", parts=["url"], if_not_exists=True)
    links.create_index("visits", parts=["visits"], unique=False, if_not_exists=True)


@app.procedure("links.add")
def add(box: Box, url: str) -> int:
    """Return the id of a URL, which is stored if it is new."""
    if not url.startswith(("http://", "https://")):
        raise BoxError.procedure("an http or https URL is required")
    link = box.space.links.index.url.get(url)
    if link is None:
        link = box.space.links.insert([None, url, 0])
    return int(link["id"])


@app.procedure("links.visit")
def visit(box: Box, link_id: int) -> str:
    """Count a visit and return the URL."""
    link = box.space.links.update(link_id, [("+", "visits", 1)])
    if link is None:
        raise BoxError.procedure(f"there is no link {link_id}")
    return str(link["url"])


@app.procedure("links.top")
def top(box: Box, count: int = 10) -> list[Tuple]:
    """Return the most visited links."""
    return box.space.links.index.visits.select(None, iterator="REQ", limit=count)


@app.metrics
def metrics(box: Box) -> dict[str, int]:
    """Report the number of links to Graphite."""
    return {"links": box.space.links.len()}
