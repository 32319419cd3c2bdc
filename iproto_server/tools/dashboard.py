"""The command `dashboard`: prints what is shipped for Grafana and Prometheus."""

from __future__ import annotations

import pkgutil
from typing import Final

import click

from iproto_server.tools.choice import Choice

_FILES: Final = {"grafana": "shipped/queues.json", "alerts": "shipped/alerts.yml"}


@click.command(
    short_help="Print the dashboard for Grafana or the alert rules for Prometheus.",
    epilog="The metrics are those of --http; see docs/OPERATIONS.md.",
)
@click.argument("kind", metavar="grafana|alerts", type=Choice("kind", list(_FILES)))
def dashboard(kind: str) -> None:
    """Print the dashboard of the queues for Grafana (JSON, to be imported), or the alert rules for Prometheus
    (YAML, a file of rule_files).
    """
    click.echo(shipped(kind), nl=False)


def shipped(kind: str) -> str:
    """Return a shipped file.

    Parameters:
        kind: "grafana" or "alerts".
    """
    data = pkgutil.get_data("iproto_server.metrics", _FILES[kind])
    assert data is not None  # the package is not without a loader
    return data.decode("utf-8")
