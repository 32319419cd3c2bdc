"""Which options a configuration file of Tarantool 3 gives the server, and what it refuses."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest

from iproto_server.config.address import Address
from iproto_server.config.config import Config, load_config
from iproto_server.config.tarantool3.schema import Mapped, options_by_path
from iproto_server.config.tls import TlsParameters
from tests.config.tarantool3.cluster import load, refusal
from tests.programs import REPOSITORY

UUID = "b8fb2b3c-2d1e-4c5e-9d61-0b6a3c0e5f11"

CLUSTER = """
wal: {mode: fsync}
snapshot: {count: 5}
iproto: {net_msg_max: 100}
groups:
  storages:
    snapshot: {count: 4, by: {interval: 60}}
    replicasets:
      first:
        wal: {max_size: 1000000}
        instances:
          one: {snapshot: {by: {interval: 30}}}
      second:
        instances:
          two: {wal: {mode: write}}
"""


class TestOptions:
    def test_every_option_that_the_server_has(self, tmp_path: Path) -> None:
        config = load(
            tmp_path,
            f"""
            app: {{module: 'jobs:app'}}
            process: {{work_dir: /var/lib/jobs}}
            database: {{mode: ro, instance_uuid: {UUID}}}
            iproto:
              listen: [{{uri: '127.0.0.1:3301'}}, {{uri: 'unix/:/run/jobs.sock'}}]
              net_msg_max: 1000
            log: {{to: file, file: jobs.log, level: 7, format: json}}
            memtx: {{memory: 2147483648}}
            fiber: {{too_long_threshold: 0.25}}
            wal: {{dir: logs, mode: fsync, max_size: 1073741824}}
            snapshot:
              dir: snapshots
              by: {{interval: 600, wal_size: 1e18}}
              count: 3
              snap_io_rate_limit: 1.5
            security: {{auth_type: pap-sha256, disable_guest: true}}
            metrics: {{include: [all], exclude: [], labels: {{alias: jobs-1}}}}
            """,
        )
        assert config == Config(
            apps=("jobs:app",),
            work_dir=Path("/var/lib/jobs"),
            read_only=True,
            instance_uuid=uuid.UUID(UUID),
            listen=(Address("127.0.0.1", 3301), Address(path="/run/jobs.sock")),
            net_msg_max=1000,
            log=Path("jobs.log"),
            log_level="debug",
            log_format="json",
            memtx_memory=2 * 1024**3,
            too_long_threshold=0.25,
            wal_dir=Path("logs"),
            wal_mode="fsync",
            wal_max_size=1024**3,
            memtx_dir=Path("snapshots"),
            checkpoint_interval=600.0,
            checkpoint_wal_threshold=10**18,
            checkpoint_count=3,
            snap_io_rate_limit=1.5,
            auth_type="pap-sha256",
            guest="none",
            instance_name="jobs-1",
        )

    @pytest.mark.parametrize("text", ["", "{}", "# nothing", "wal:", "wal: {dir: null}", "groups: {}"])
    def test_what_is_empty_or_null_counts_as_not_set(self, tmp_path: Path, text: str) -> None:
        assert load(tmp_path, text) == Config()

    @pytest.mark.parametrize("suffix", ["yaml", "yml"])
    def test_the_suffix_tells_yaml_from_toml(self, tmp_path: Path, suffix: str) -> None:
        file = tmp_path / f"config.{suffix}"
        file.write_text("log: {level: warn}")
        assert load_config(file=file).log_level == "warn"

    def test_command_line_over_environment_over_file(self, tmp_path: Path) -> None:
        text = "wal: {mode: fsync}\nlog: {level: warn, format: json}\n"
        environment = {"IPROTO_SERVER_LOG_LEVEL": "error", "IPROTO_SERVER_WAL_MODE": "write"}
        config = load(tmp_path, text, None, environment, wal_mode="none")
        assert (config.wal_mode, config.log_level, config.log_format) == ("none", "error", "json")

    @pytest.mark.parametrize(
        ("size", "expected"),
        [("64MiB", 2**26), ("1.5GiB", 3 * 2**29), ("67108864 B", 2**26), ("1tib", 2**40)],
    )
    def test_sizes_may_have_units(self, tmp_path: Path, size: str, expected: int) -> None:
        assert load(tmp_path, f"memtx: {{memory: {size}}}").memtx_memory == expected

    @pytest.mark.parametrize(
        ("time", "expected"),
        [("500ms", 0.5), ("30s", 30.0), ("5m", 300.0), ("1.5h", 5400.0), ("1d", 86400.0), ("1M", 2592000.0)],
    )
    def test_times_may_have_units(self, tmp_path: Path, time: str, expected: float) -> None:
        text = f"snapshot: {{by: {{interval: {time}}}}}"
        assert load(tmp_path, text).checkpoint_interval == expected

    def test_parameters_of_tls(self, tmp_path: Path) -> None:
        [address] = load(
            tmp_path,
            """
            iproto:
              listen:
              - uri: 127.0.0.1:3301
                params: {transport: ssl, ssl_key_file: /a b&c.key, ssl_cert_file: c.crt, ssl_ciphers: 'A:B'}
            """,
        ).listen
        assert address == Address("127.0.0.1", 3301, tls=TlsParameters("/a b&c.key", "c.crt", ciphers="A:B"))

    def test_the_role_for_metrics(self, tmp_path: Path) -> None:
        config = load(
            tmp_path,
            """
            roles: [roles.metrics-export]
            roles_cfg:
              roles.metrics-export:
                http:
                - listen: '127.0.0.1:8081'
                  endpoints: [{path: /metrics/prometheus, format: prometheus}]
            """,
        )
        assert config.metrics_listen == Address("127.0.0.1", 8081)
        assert config.warnings == ()


class TestScopes:
    def test_a_narrower_scope_wins_and_mappings_are_merged(self, tmp_path: Path) -> None:
        one, two = load(tmp_path, CLUSTER, "one"), load(tmp_path, CLUSTER, "two")
        assert (one.wal_mode, one.wal_max_size, one.net_msg_max) == ("fsync", 1000000, 100)
        assert (one.checkpoint_interval, one.checkpoint_count) == (30.0, 4)
        assert (two.wal_mode, two.wal_max_size, two.net_msg_max) == ("write", 256 * 1024**2, 100)
        assert (two.checkpoint_interval, two.checkpoint_count) == (60.0, 4)

    def test_lists_are_replaced(self, tmp_path: Path) -> None:
        text = """
        iproto: {listen: [{uri: 'unix:/a'}, {uri: 'unix:/b'}]}
        groups: {g: {replicasets: {r: {instances: {one: {iproto: {listen: [{uri: 'unix:/c'}]}}}}}}}
        """
        assert load(tmp_path, text).listen == (Address(path="/c"),)

    def test_null_does_not_hide_a_wider_scope(self, tmp_path: Path) -> None:
        text = "wal: {mode: fsync}\ngroups: {g: {wal: {mode: null}, replicasets: {r: {instances: {one: }}}}}"
        assert load(tmp_path, text).wal_mode == "fsync"

    def test_a_user_has_fields_of_several_scopes(self, tmp_path: Path) -> None:
        text = """
        credentials: {users: {ann: {password: secret, roles: [super]}}}
        groups: {g: {replicasets: {r: {instances: {one: {credentials: {users: {ann: {roles: [public]}}}}}}}}}
        """
        credentials = load(tmp_path, text).credentials
        assert credentials is not None
        [ann] = credentials.users
        assert (ann.password, ann.roles) == ("secret", ("public",))

    def test_the_only_instance_needs_no_name(self, tmp_path: Path) -> None:
        text = "groups: {g: {replicasets: {r: {instances: {one: }}}}}"
        assert load(tmp_path, text).instance_name == "one"

    def test_the_environment_may_choose(self, tmp_path: Path) -> None:
        config = load(tmp_path, CLUSTER, environment={"IPROTO_SERVER_INSTANCE_NAME": "two"})
        assert config.instance_name == "two"

    def test_one_of_several_has_to_be_chosen(self, tmp_path: Path) -> None:
        message = "config.yaml: groups: choose one of the instances with --instance-name: one, two"
        assert refusal(tmp_path, CLUSTER) == message

    @pytest.mark.parametrize(
        ("name", "hint"), [("twoo", ', did you mean "two"?'), ("x", ": there are one, two")]
    )
    def test_an_instance_that_does_not_exist(self, tmp_path: Path, name: str, hint: str) -> None:
        message = refusal(tmp_path, CLUSTER, name)
        assert message == f'config.yaml: groups: there is no instance "{name}"{hint}'

    def test_two_instances_of_one_name(self, tmp_path: Path) -> None:
        text = "groups: {g: {replicasets: {r: {instances: {a: }}, s: {instances: {a: }}}}}"
        place, other = "groups.g.replicasets.s.instances.a", "groups.g.replicasets.r"
        assert refusal(tmp_path, text, "a") == f'config.yaml: {place}: {other} has an instance "a" as well'

    def test_directories_that_are_not_given_are_those_of_tarantool(self, tmp_path: Path) -> None:
        config = load(tmp_path, CLUSTER, "one")
        assert (config.log_directory, config.snapshot_directory) == (Path("var/lib/one"),) * 2
        assert load(tmp_path, "wal: {mode: write}").wal_dir is None

    def test_the_log_that_is_not_given_as_well(self, tmp_path: Path) -> None:
        assert load(tmp_path, "log: {to: file}" + CLUSTER, "one").log == Path("var/log/one/tarantool.log")


class TestReadOnly:
    """The rules of Tarantool for `database.mode` and `replication.failover`."""

    @staticmethod
    def of(tmp_path: Path, options: str, replicaset: str = "", members: str = "one: , two: ") -> bool:
        replicas = f"{{{replicaset}instances: {{{members}}}}}"
        text = f"{options}\ngroups: {{g: {{replicasets: {{r: {replicas}}}}}}}"
        return load(tmp_path, text, "one").read_only

    def test_a_single_instance_takes_changes(self, tmp_path: Path) -> None:
        assert not self.of(tmp_path, "", members="one: ")

    def test_one_of_several_does_not(self, tmp_path: Path) -> None:
        assert self.of(tmp_path, "")
        assert self.of(tmp_path, "replication: {failover: off}")

    @pytest.mark.parametrize(("mode", "is_read_only"), [("rw", False), ("ro", True)])
    def test_the_mode_decides(self, tmp_path: Path, mode: str, is_read_only: bool) -> None:
        assert self.of(tmp_path, f"database: {{mode: {mode}}}") is is_read_only

    @pytest.mark.parametrize(
        ("leader", "is_read_only"), [("leader: one, ", False), ("leader: two, ", True), ("", True)]
    )
    def test_the_leader_of_a_manual_failover(self, tmp_path: Path, leader: str, is_read_only: bool) -> None:
        assert self.of(tmp_path, "replication: {failover: manual}", leader) is is_read_only

    def test_others_are_named_in_the_log(self, tmp_path: Path) -> None:
        text = "groups: {g: {replicasets: {r: {instances: {one: , two: , three: }}}}}"
        [warning] = load(tmp_path, text, "two").warnings
        assert warning.endswith(
            "the replicaset r has other instances (one, three), which do not get the data of this one:"
            " there is no replication"
        )

    @pytest.mark.parametrize("failover", ["election", "supervised", "true", "1"])
    def test_other_failovers_are_refused(self, tmp_path: Path, failover: str) -> None:
        message = refusal(tmp_path, f"replication: {{failover: {failover}}}")
        assert message == (
            "config.yaml: replication.failover: it is not supported: off or manual is expected"
        )


class TestTemplates:
    def test_names(self, tmp_path: Path) -> None:
        text = """
        wal: {dir: '/data/{{ group_name }}/{{replicaset_name}}/{{  instance_name  }}'}
        iproto: {listen: [{uri: 'unix:/run/{{ instance_name }}.sock'}]}
        groups: {g: {replicasets: {r: {instances: {one: }}}}}
        """
        config = load(tmp_path, text)
        assert config.wal_dir == Path("/data/g/r/one")
        assert config.listen == (Address(path="/run/one.sock"),)

    def test_a_name_may_be_given_without_instances_in_the_file(self, tmp_path: Path) -> None:
        config = load(tmp_path, "wal: {dir: '{{ instance_name }}'}", "one")
        assert (config.wal_dir, config.instance_name) == (Path("one"), "one")

    def test_secrets_from_the_environment_and_from_files(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("of a file\n")
        text = f"""
        process: {{work_dir: {tmp_path}}}
        config:
          context:
            one: {{from: env, env: SECRET}}
            two: {{from: file, file: secret, rstrip: true}}
            three: plain
            four: 4
            five: true
        credentials:
          users:
            ann: {{password: '{{{{ context.one }}}}/{{{{ context.two }}}}'}}
            bob: {{password: '{{{{context.three}}}}{{{{context.four}}}}{{{{context.five}}}}'}}
        """
        credentials = load(tmp_path, text, environment={"SECRET": "of a variable"}).credentials
        assert credentials is not None
        assert [user.password for user in credentials.users] == ["of a variable/of a file", "plain4true"]

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("wal: {dir: '{{ instance_name }}'}", "wal.dir: {{ instance_name }} has no value: give --in"),
            ("wal: {dir: '{{ context.a }}'}", "wal.dir: there is no variable {{ context.a }}"),
            (
                "config: {context: {a: {from: env, env: ABSENT}}}",
                'context.a.env: there is no environment variable "A',
            ),
            ("config: {context: {a: {from: env}}}", "config.context.a.env: a name is expected"),
            (
                "config: {context: {a: {from: file, file: absent}}}",
                "context.a.file: cannot read absent: No such file",
            ),
            ("config: {context: {a: {from: etcd}}}", 'config.context.a.from: "env" or "file" is expected'),
            ("config: {context: {a: {env: ABSENT}}}", 'config.context.a.from: "env" or "file" is expected'),
            ("config: {context: {a: [1]}}", "config.context.a: a mapping of names to values is expected"),
            (
                "config: {context: {a: {from: env, env: HOME, rstip: true}}}",
                "config.context.a.rstip: unknown option",
            ),
        ],
    )
    def test_a_template_or_a_secret_without_a_value(self, tmp_path: Path, text: str, reason: str) -> None:
        assert reason in refusal(tmp_path, text)

    def test_a_secret_that_is_not_text(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_bytes(b"\xff")
        text = f"config: {{context: {{a: {{from: file, file: {tmp_path}/secret}}}}}}"
        assert refusal(tmp_path, text).endswith("config.context.a.file: secret is not a text")


class TestDocument:
    """docs/OPERATIONS.md, "YAML files of Tarantool 3"."""

    DOCUMENT = (REPOSITORY / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")

    def test_the_example(self, tmp_path: Path) -> None:
        [example] = re.findall(r"```yaml\n(# config.yaml:.*?)```", self.DOCUMENT, re.DOTALL)
        config = load(tmp_path, example, "jobs-1", {"JOBS_PASSWORD": "secret"})
        assert config.work_dir == Path("/srv/tarantool")
        assert config.snapshot_directory == Path("/srv/tarantool/var/lib/jobs-1")
        assert config.checkpoint_interval == 600
        assert config.credentials is not None
        assert config.credentials.users[0].password == "secret"
        assert config.warnings == ()

    def test_the_table_has_every_option(self) -> None:
        _, _, section = self.DOCUMENT.partition("### YAML files of Tarantool 3")
        mapped = [path for path, node in options_by_path() if isinstance(node, Mapped)]
        assert [path for path in mapped if f"`{path}`" not in section] == []
