"""The server's options for its log and for monitoring."""

from __future__ import annotations

from iproto_server.config import option_parsers as values
from iproto_server.config.option import CENTURY, Option

_MONITORING = "Log and monitoring"

MONITORING_OPTIONS: tuple[Option, ...] = (
    Option(
        "log",
        values.path,
        _MONITORING,
        "FILE",
        "Append the log to this file; a relative one is in the work directory, and missing directories are "
        "made. If it is moved away or removed, it is made anew; the call log.rotate "
        "does so at once.",
        default="stderr",
    ),
    Option(
        "too_long_threshold",
        values.seconds(0.01, CENTURY),
        _MONITORING,
        "SECONDS",
        "Log a warning, with the position in the code, when a request or anything else keeps the event loop "
        "busy for longer than this.",
        default="0.5",
    ),
    Option(
        "log_level",
        values.log_level,
        _MONITORING,
        "LEVEL",
        "Least important level to log: 0 to 7, or fatal, syserror, error, crit, warn, info, verbose, debug.",
        default="info",
    ),
    Option(
        "log_format",
        values.one_of("log format", "plain", "json"),
        _MONITORING,
        "plain|json",
        "Format of the log: one line, or one JSON object, per event.",
        default="plain",
    ),
    Option(
        "graphite",
        values.receiver,
        _MONITORING,
        "HOST:PORT",
        "Send counters to this Graphite (carbon) plain text receiver.",
    ),
    Option(
        "graphite_protocol",
        values.one_of("graphite protocol", "tcp", "udp"),
        _MONITORING,
        "tcp|udp",
        "Protocol for sending counters.",
        default="tcp",
    ),
    Option(
        "graphite_prefix",
        values.prefix,
        _MONITORING,
        "PREFIX",
        "Prefix of the counters' names.",
        default="queue.stats",
    ),
    Option(
        "graphite_interval",
        values.seconds(0.1, 86400),
        _MONITORING,
        "SECONDS",
        "Time between two samples of the counters.",
        default="1",
    ),
    Option(
        "http",
        values.listen,
        _MONITORING,
        "ADDRESS",
        "Serve HTTP on this address: the dashboard at /, metrics for Prometheus at /metrics, /health and "
        "/ready. Written as for --listen, with its TLS parameters, which an address that other machines can "
        "reach needs.",
    ),
    Option(
        "http_host",
        values.host_name,
        _MONITORING,
        "NAME",
        "Name under which browsers reach the dashboard, beside IP addresses, localhost and the machine's "
        "name. May be repeated.",
        many=True,
    ),
    Option(
        "http_behind_proxy",
        values.boolean,
        _MONITORING,
        "",
        "A reverse proxy in front of --http does TLS: serve other machines without it.",
    ),
    Option(
        "metrics_listen",
        values.listen,
        _MONITORING,
        "ADDRESS",
        "Serve the metrics on this address in place of that of --http, and without TLS unless it has TLS "
        "parameters.",
    ),
    Option(
        "metrics_token_file",
        values.path,
        _MONITORING,
        "FILE",
        "Serve the metrics only to clients that send the token in this file, as Authorization: Bearer TOKEN.",
    ),
    Option(
        "metrics_max_queues",
        values.whole(0, 2**31 - 1),
        _MONITORING,
        "COUNT",
        "Maximum number of queues in the metrics for Prometheus; those left out are counted.",
        default="100",
    ),
    Option(
        "instance_name",
        values.instance_name,
        _MONITORING,
        "NAME",
        "Name of this instance: the label alias of the metrics for Prometheus, and which instance of a "
        "YAML file this one is.",
        default="the address of --listen",
    ),
)
