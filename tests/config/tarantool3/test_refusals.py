"""What is refused in a configuration of Tarantool 3, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from iproto_server.config.config import Config, ConfigError, load_config
from tests.config.tarantool3.cluster import load, refusal

ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n" for number in range(1, 12)
)
"""A short file of a million million values."""


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("wall: {mode: write}", 'wall: unknown option, did you mean "wal"?'),
            ("wal: {mod: write}", 'wal.mod: unknown option, did you mean "mode"?'),
            ("wal_mode: write", 'wal_mode: unknown option, did you mean "wal.mode"?'),
            ("memtx_memory: 1", 'memtx_memory: unknown option, did you mean "memtx.memory"?'),
            ("listen: 3301", 'listen: unknown option, did you mean "iproto.listen"?'),
            ("qqqq: 1", "qqqq: unknown option"),
            ("leader: one", "leader: unknown option"),
            ("groups: {g: {wall: 1}}", 'groups.g.wall: unknown option, did you mean "wal"?'),
            (
                "groups: {g: {replicasets: {r: {instances: {a: {log: {levl: 5}}}}}}}",
                'groups.g.replicasets.r.instances.a.log.levl: unknown option, did you mean "level"?',
            ),
            (
                "groups: {g: {replicasets: {r: {instances: {a: , b: {wall: 5}}}}}}",
                'groups.g.replicasets.r.instances.b.wall: unknown option, did you mean "wal"?',
            ),
            (
                "credentials: {users: {ann: {pasword: x}}}",
                'users.ann.pasword: unknown option, did you mean "pa',
            ),
        ],
    )
    def test_unknown_options_are_named_with_their_path(self, tmp_path: Path, text: str, message: str) -> None:
        found = refusal(tmp_path, text, "a")
        assert found.startswith("config.yaml: ")
        assert message in found

    @pytest.mark.parametrize(
        ("text", "path"),
        [
            ("sharding: {bucket_count: 100}", "sharding"),
            ("app: {file: init.lua}", "app.file"),
            ("app: {cfg: {a: 1}}", "app.cfg"),
            ("roles: [config.storage]", "roles"),
            ("config: {etcd: {prefix: /a}}", "config.etcd"),
            ("config: {storage: {prefix: /a}}", "config.storage"),
            ("log: {to: syslog}", "log.to"),
            ("process: {background: true}", "process.background"),
            ("process: {username: nobody}", "process.username"),
            ("database: {hot_standby: true}", "database.hot_standby"),
            ("replication: {anon: true}", "replication.anon"),
            ("security: {auth_retries: 3}", "security.auth_retries"),
            ("metrics: {labels: {zone: a}}", "metrics.labels.zone"),
            ("isolated: true", "isolated"),
            ("audit_log: {to: file}", "audit_log"),
            ("wal: {retention_period: 10}", "wal.retention_period"),
            ("include: [a.yaml]", "include"),
            ("conditional: [{if: tarantool_version > 3.0.0}]", "conditional"),
            (
                "credentials: {users: {a: {privileges: [{permissions: [execute], lua_eval: true}]}}}",
                "lua_eval",
            ),
            ("credentials: {users: {a: {privileges: [{permissions: [execute], sql: [all]}]}}}", "sql"),
        ],
    )
    def test_what_the_server_cannot_do_is_refused(self, tmp_path: Path, text: str, path: str) -> None:
        message = refusal(tmp_path, text)
        assert path in message
        assert "not supported" in message

    @pytest.mark.parametrize(
        "text",
        [
            "process: {background: false}",
            "isolated: false",
            "database: {hot_standby: false}",
            "wal: {retention_period: 0}",
            "replication: {anon: false}",
            "iproto: {threads: 1}",
            "feedback: {enabled: false}",
            "console: {enabled: false}",
        ],
    )
    def test_but_not_where_the_server_does_just_that(self, tmp_path: Path, text: str) -> None:
        assert load(tmp_path, text) == Config()

    @pytest.mark.parametrize(
        ("text", "warning"),
        [
            ("iproto: {threads: 4}", "iproto.threads has no effect: one thread serves all connections"),
            ("vinyl: {memory: 1}", "vinyl has no effect: there is no engine vinyl"),
            ("log: {file: a.log}", "log.file has no effect: log.to is not file"),
            ("memtx: {max_tuple_size: 1}", "memtx.max_tuple_size has no effect: --max-frame limits"),
            ("metrics: {include: [cpu]}", "metrics.include has no effect: all metrics are served"),
            ("roles_cfg: {a: {}}", "roles_cfg.a has no effect: a is not among the roles"),
            ("replication: {timeout: 1}", "replication.timeout has no effect: there is no replication"),
        ],
    )
    def test_what_changes_nothing_is_a_warning(self, tmp_path: Path, text: str, warning: str) -> None:
        [found] = load(tmp_path, text).warnings
        assert found.startswith(f"{tmp_path}/config.yaml: {warning}")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("wal: {mode: always}", 'wal.mode: unknown wal mode "always": choose none, write or fsync'),
            ("wal: {dir: 5}", "wal.dir: 5 is not a text"),
            ("wal: 5", "wal: a mapping of names to values is expected"),
            (
                "wal: {max_size: 1MB}",
                'wal.max_size: "1MB" is not a size: expected bytes, or a unit such as 64MiB',
            ),
            ("snapshot: {by: {interval: daily}}", 'snapshot.by.interval: "daily" is not a time'),
            ("snapshot: {by: {interval: 1x}}", 'snapshot.by.interval: "1x" is not a time'),
            ("snapshot: {count: 0}", "snapshot.count: 0 is out of bounds"),
            ("memtx: {memory: 1KiB}", "memtx.memory: 1024 bytes is out of bounds"),
            ("log: {level: loud}", 'log.level: unknown log level "loud"'),
            ("log: {to: nowhere}", "log.to: stderr or file is expected"),
            ("database: {mode: both}", "database.mode: ro or rw is expected"),
            ("security: {disable_guest: maybe}", "security.disable_guest: true or false is expected"),
            ("iproto: {listen: '3301'}", "iproto.listen: a list is expected"),
            ("iproto: {listen: []}", "iproto.listen: the list is empty"),
            ("iproto: {listen: ['3301']}", "iproto.listen[1]: a mapping with a text uri is expected"),
            ("iproto: {listen: [{uri: 3301}]}", "iproto.listen[1]: a mapping with a text uri is expected"),
            ("iproto: {listen: [{uri: 'x'}]}", 'iproto.listen: "x" is not an address'),
            ("iproto: {listen: [{uri: 'a:b@c:1'}]}", "iproto.listen[1].uri: an address has no user"),
            ("iproto: {listen: [{uri: '1?a=b'}]}", "iproto.listen[1].uri: parameters belong into params"),
            (
                "iproto: {listen: [{url: '1', uri: '1'}]}",
                'listen[1].url: unknown option, did you mean "uri"?',
            ),
            ("iproto: {listen: [{uri: '1', params: 5}]}", "listen[1].params: a mapping of names"),
            (
                "iproto: {listen: [{uri: '1', params: {ssl_key: a}}]}",
                "listen[1].params.ssl_key: unknown option",
            ),
            (
                "iproto: {listen: [{uri: '1', params: {transport: 1}}]}",
                "params.transport: a text is expected",
            ),
            (
                "iproto: {listen: [{uri: '1', params: {transport: tls}}]}",
                'transport "tls" is neither plain nor',
            ),
            ("groups: [a]", "groups: a mapping of names to values is expected"),
            (
                "groups: {g: {replicasets: {r: {instances: [a]}}}}",
                "r.instances: a mapping of names to values",
            ),
            ("[1]", "the file: a mapping of names to values is expected"),
            ("wal: {mode: write, mode: none}", 'line 1, column 20: the key "mode" is there twice'),
            ("wal: {dir: a}\nwal: {dir: b}", 'line 2, column 1: the key "wal" is there twice'),
            ("1: 2", "line 1, column 1: the key 1 is not a text"),
            ("wal: [", "it is not a YAML file: line 1, column 7: expected the node content"),
            ("a: !!python/object:os.system {}", "could not determine a constructor for the tag"),
            ("a: !!bool maybe", "it is not a YAML file: a value does not fit its tag"),
            ("a: !!timestamp b", "it is not a YAML file: a value does not fit its tag"),
            ("process: &a {title: *a}", "an alias leads to a value that contains it"),
            ("wal: &a [*a]", "an alias leads to a value that contains it"),
            (f"a: {'[' * 5000}", "it is not a YAML file: it is nested too deeply"),
            (ALIASES, "with its aliases replaced, the file has more than 100,000 values"),
            ("snapshot: {by: {interval: 10:30}}", 'snapshot.by.interval: "10:30" is not a time: expected'),
            ("snapshot: {by: {interval: 1:30.5}}", 'snapshot.by.interval: "1:30.5" is not a time'),
            ("iproto:\n  net_msg_max: 1:30", 'iproto.net_msg_max: "1:30" is not a whole number'),
            ("roles: a", "roles: a list of names is expected"),
            ("roles_cfg: [a]", "roles_cfg: a mapping of names to values is expected"),
        ],
    )
    def test_a_wrong_value_is_named_with_its_path(self, tmp_path: Path, text: str, message: str) -> None:
        found = refusal(tmp_path, text)
        assert found.startswith("config.yaml: ")
        assert message in found

    @pytest.mark.parametrize(
        ("server", "message"),
        [
            ("5", "http: a list of one server is expected"),
            ("[{listen: 1}, {listen: 2}]", "http: a list of one server is expected"),
            ("[{listen: 1}]", "http[1].endpoints is missing"),
            ("[{listen: 1, endpoints: [], a: 1}]", "http[1].a: unknown option"),
            ("[{listen: 1, endpoints: []}]", "http[1].endpoints: a list of endpoints is expected"),
            ("[{listen: 1, endpoints: [{path: /x, format: prometheus}]}]", "metrics are at /metrics and"),
            (
                "[{listen: 1, endpoints: [{path: /metrics, format: json}]}]",
                "endpoints[1].format: it is not sup",
            ),
            ("[{listen: x, endpoints: [{path: /metrics, format: prometheus}]}]", '"x" is not an address'),
        ],
    )
    def test_an_impossible_role_for_metrics(self, tmp_path: Path, server: str, message: str) -> None:
        text = f"roles: [roles.metrics-export]\nroles_cfg: {{roles.metrics-export: {{http: {server}}}}}"
        assert message in refusal(tmp_path, text)

    def test_a_file_that_is_not_text(self, tmp_path: Path) -> None:
        file = tmp_path / "config.yaml"
        file.write_bytes(b"\xff\xfe\xff")
        with pytest.raises(ConfigError, match="is not a YAML file"):
            load_config(file=file)

    def test_a_merge_key_is_no_duplicate(self, tmp_path: Path) -> None:
        text = "wal: &dirs {dir: a}\nsnapshot: {<<: *dirs, count: 3}"
        config = load(tmp_path, text)
        assert (config.wal_dir, config.memtx_dir, config.checkpoint_count) == (Path("a"), Path("a"), 3)
