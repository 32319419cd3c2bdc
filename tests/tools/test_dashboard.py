"""`iproto-server dashboard`: the dashboard for Grafana and the alert rules for Prometheus."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from iproto_server.tools.dashboard import shipped
from tests.command_line import run


def panels() -> list[dict[str, Any]]:
    """The panels with queries."""
    return [panel for panel in json.loads(shipped("grafana"))["panels"] if panel["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    return [rule for group in yaml.safe_load(shipped("alerts"))["groups"] for rule in group["rules"]]


def names(expression: str) -> set[str]:
    """The series of ours in a query."""
    return set(re.findall(r"\b(?:tnt|iproto_server)_\w+", expression))


def queried() -> set[str]:
    """The series in all queries."""
    expressions = [target["expr"] for panel in panels() for target in panel["targets"]]
    return {name for each in (*expressions, *(rule["expr"] for rule in rules())) for name in names(each)}


@pytest.mark.parametrize("kind", ["grafana", "alerts"])
def test_it_is_printed(kind: str) -> None:
    done = run("dashboard", kind)
    assert (done.status, done.errors) == (0, [])
    assert done.output == shipped(kind)
    assert done.output.endswith("\n")
    assert not done.output.endswith("\n\n")


def test_something_else_is_refused() -> None:
    done = run("dashboard", "kibana")
    assert done.status == 2
    assert done.errors == [
        "Invalid value for 'grafana|alerts': unknown kind \"kibana\": choose grafana or alerts"
    ]


def test_the_dashboard_is_whole() -> None:
    dashboard = json.loads(shipped("grafana"))
    assert dashboard["uid"] == "iproto-server-queues"
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    assert variables == {"datasource", "job", "alias", "queue"}
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(numbers) == len(set(numbers))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        squares = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not squares & taken, panel["title"]
        assert all(x < 24 for x, _ in squares), panel["title"]
        taken |= squares


def test_queries_use_the_variables() -> None:
    for panel in panels():
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target in panel["targets"]:
            expression = target["expr"]
            used = set(re.findall(r"\$(\w+)", expression)) - {"__rate_interval"}
            assert "job" in used
            assert used <= {"job", "alias", "queue"}
            for name in names(expression):
                assert f'{name}{{job=~"$job",alias=~"$alias"' in expression
                is_of_queues = name.startswith("tnt_queue_") and name != "tnt_queue_left_out"
                assert is_of_queues == ('name=~"$queue"' in expression)


def test_rules_tell_what_to_do() -> None:
    alerts = [rule["alert"] for rule in rules()]
    assert len(alerts) == len(set(alerts))
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert "$labels." in rule["annotations"]["summary"] + rule["annotations"]["description"]


def test_the_event_loop_may_take_its_usual_time() -> None:
    [rule] = [rule for rule in rules() if "tnt_ev_loop_time" in rule["expr"]]
    threshold = float(rule["expr"].split(">")[1])
    assert threshold == 500  # milliseconds, as --too-long-threshold
