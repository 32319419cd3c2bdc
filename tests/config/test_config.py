"""Where options come from, and errors that say where they are."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from iproto_server.config.address import Address
from iproto_server.config.config import Config, ConfigError, GraphiteConfig, load_config
from tests.config.sources import refusal, refusal_of_file, toml

UUID = "b8fb2b3c-2d1e-4c5e-9d61-0b6a3c0e5f11"


class TestSources:
    def test_without_any_source_everything_has_its_default(self) -> None:
        config = load_config()
        assert config == Config()
        assert config.listen == (Address("127.0.0.1", 3301),)
        assert config.net_msg_max == 768
        assert config.graphite is None
        assert config.instance_uuid is None

    def test_every_option_from_the_command_line(self) -> None:
        assert load_config(
            {
                "apps": ("jobs:app", "more.jobs:app"),
                "listen": ("127.0.0.1:3301", "unix:/run/jobs.sock"),
                "allow_guest": True,
                "net_msg_max": "1000",
                "max_frame": "1M",
                "write_high_water": "64K",
                "work_dir": "/var/lib/jobs",
                "wal_dir": "logs",
                "wal_mode": "fsync",
                "wal_max_size": "1G",
                "force_recovery": True,
                "memtx_dir": "/var/lib/snapshots",
                "memtx_memory": "2G",
                "checkpoint_interval": "0.5",
                "checkpoint_count": "3",
                "checkpoint_wal_threshold": "10M",
                "snap_io_rate_limit": "1.5",
                "instance_uuid": UUID,
                "log_level": "debug",
                "log_format": "json",
                "graphite": "carbon:2003",
                "graphite_protocol": "udp",
                "graphite_prefix": "jobs.stats",
                "graphite_interval": "2.5",
            }
        ) == Config(
            apps=("jobs:app", "more.jobs:app"),
            listen=(Address("127.0.0.1", 3301), Address(path="/run/jobs.sock")),
            allow_guest=True,
            net_msg_max=1000,
            max_frame=1048576,
            write_high_water=65536,
            work_dir=Path("/var/lib/jobs"),
            wal_dir=Path("logs"),
            wal_mode="fsync",
            wal_max_size=1024**3,
            force_recovery=True,
            memtx_dir=Path("/var/lib/snapshots"),
            memtx_memory=2 * 1024**3,
            checkpoint_interval=0.5,
            checkpoint_count=3,
            checkpoint_wal_threshold=10 * 1024**2,
            snap_io_rate_limit=1.5,
            instance_uuid=uuid.UUID(UUID),
            log_level="debug",
            log_format="json",
            graphite=GraphiteConfig(Address("carbon", 2003), "udp", "jobs.stats", 2.5),
        )

    def test_the_same_from_a_file(self, tmp_path: Path) -> None:
        file = toml(
            tmp_path,
            """
            apps = ["jobs:app", "more.jobs:app"]
            listen = [3301, "unix:/run/jobs.sock"]
            allow_guest = true
            net_msg_max = 1000
            max_frame = "1M"
            work_dir = "/var/lib/jobs"
            force_recovery = true
            checkpoint_interval = 0
            checkpoint_count = 3
            checkpoint_wal_threshold = 1_000_000_000
            snap_io_rate_limit = 20
            log_level = 7
            graphite = "carbon:2003"
            graphite_interval = 2.5
            """,
        )
        assert load_config(file=file) == Config(
            apps=("jobs:app", "more.jobs:app"),
            listen=(Address(port=3301), Address(path="/run/jobs.sock")),
            allow_guest=True,
            net_msg_max=1000,
            max_frame=1048576,
            work_dir=Path("/var/lib/jobs"),
            force_recovery=True,
            checkpoint_interval=0.0,
            checkpoint_count=3,
            checkpoint_wal_threshold=10**9,
            snap_io_rate_limit=20.0,
            log_level="debug",
            graphite=GraphiteConfig(Address("carbon", 2003), "tcp", "queue.stats", 2.5),
        )

    def test_the_same_from_the_environment(self) -> None:
        environment = {
            "IPROTO_SERVER_APPS": "jobs:app, more.jobs:app",
            "IPROTO_SERVER_LISTEN": "127.0.0.1:3301,unix:/run/jobs.sock",
            "IPROTO_SERVER_ALLOW_GUEST": "yes",
            "IPROTO_SERVER_WORK_DIR": "/var/lib/jobs",
            "IPROTO_SERVER_GRAPHITE_PROTOCOL": "UDP",
            "IPROTO_SERVER_GRAPHITE": "[::1]:2003",
        }
        assert load_config(environment=environment) == Config(
            apps=("jobs:app", "more.jobs:app"),
            listen=(Address("127.0.0.1", 3301), Address(path="/run/jobs.sock")),
            allow_guest=True,
            work_dir=Path("/var/lib/jobs"),
            graphite=GraphiteConfig(Address("::1", 2003), "udp"),
        )

    def test_one_item_of_a_list_needs_no_brackets(self, tmp_path: Path) -> None:
        assert load_config(file=toml(tmp_path, 'listen = "[::1]:3301"')).listen == (Address("::1", 3301),)

    def test_command_line_over_environment_over_file(self, tmp_path: Path) -> None:
        file = toml(tmp_path, "net_msg_max = 3\nwrite_high_water = 3000\nmax_frame = 3000")
        environment = {"IPROTO_SERVER_NET_MSG_MAX": "2", "IPROTO_SERVER_WRITE_HIGH_WATER": "2000"}
        config = load_config({"net_msg_max": "10"}, environment, file)
        assert (config.net_msg_max, config.write_high_water, config.max_frame) == (10, 2000, 3000)

    def test_a_list_is_replaced_and_not_joined(self) -> None:
        config = load_config({"listen": ("unix:/a",)}, {"IPROTO_SERVER_LISTEN": "unix:/b"})
        assert config.listen == (Address(path="/a"),)

    def test_a_flag_can_be_turned_off_again(self) -> None:
        assert not load_config({"allow_guest": False}, {"IPROTO_SERVER_ALLOW_GUEST": "1"}).allow_guest

    @pytest.mark.parametrize(
        ("options", "listen", "is_open"),
        [
            ({}, "127.0.0.1:1", True),
            ({}, "0.0.0.0:1", False),
            ({"allow_guest": True}, "0.0.0.0:1", True),
            ({"guest": "auto", "allow_guest": True}, "0.0.0.0:1", True),
            ({"guest": "all"}, "0.0.0.0:1", True),
            ({"guest": "ALL", "allow_guest": False}, "0.0.0.0:1", True),
            ({"guest": "none"}, "127.0.0.1:1", False),
            ({"guest": "none", "allow_guest": False}, "unix:/a", False),
        ],
    )
    def test_guest_has_all_rights_where_one_of_two_options_says_so(
        self, options: dict[str, object], listen: str, is_open: bool
    ) -> None:
        assert load_config({**options, "listen": (listen,)}).is_open_to_guest is is_open

    def test_what_may_be_buffered_is_twice_the_largest_request_at_least(self) -> None:
        assert load_config({"max_frame": "1G"}).max_buffered_bytes == 2 * 2**30
        assert load_config({"max_frame": "1G", "max_buffered": "2G"}).max_buffered_bytes == 2 * 2**30
        with pytest.raises(
            ConfigError, match="--max-buffered: 2147483647 bytes are less than twice max_frame"
        ):
            load_config({"max_frame": "1G", "max_buffered": str(2 * 2**30 - 1)})

    def test_guest_cannot_have_all_rights_and_none(self) -> None:
        with pytest.raises(ConfigError, match="IPROTO_SERVER_ALLOW_GUEST and --guest contradict"):
            load_config({"guest": "none"}, {"IPROTO_SERVER_ALLOW_GUEST": "1"})

    def test_what_is_not_given_or_empty_counts_as_not_set(self) -> None:
        assert load_config({"listen": (), "work_dir": None}, {"IPROTO_SERVER_WORK_DIR": ""}) == Config()

    @pytest.mark.parametrize(
        "variable",
        [
            "IPROTO_SERVER_PORT",
            "IPROTO_SERVER_SERVICE_HOST",
            "IPROTO_SERVER_SERVICE_PORT",
            "IPROTO_SERVER_SERVICE_PORT_METRICS",
            "IPROTO_SERVER_PORT_3301_TCP",
            "IPROTO_SERVER_PORT_3301_TCP_ADDR",
            "IPROTO_SERVER_BLUE_SERVICE_HOST",
        ],
    )
    def test_variables_that_kubernetes_makes_of_services_are_ignored(self, variable: str) -> None:
        assert load_config(environment={variable: "tcp://10.0.0.1:3301"}) == Config()

    def test_variables_that_are_no_options_are_ignored(self) -> None:
        others = {"HOME": "/", "IPROTO_SERVER_CONFIG": "server.toml"}
        assert load_config(environment=others) == Config()

    @pytest.mark.parametrize(
        ("variable", "hint"),
        [
            ("IPROTO_SERVER_WORKDIR", ', did you mean "IPROTO_SERVER_WORK_DIR"?'),
            ("IPROTO_SERVER_WAL-MODE", ', did you mean "IPROTO_SERVER_WAL_MODE"?'),
            ("IPROTO_SERVER_QQQQQQQQQQQQQQQQQQQQ", ""),
        ],
    )
    def test_a_mistyped_variable_gets_a_hint(self, variable: str, hint: str) -> None:
        with pytest.raises(ConfigError) as raised:
            load_config(environment={variable: ""})
        assert str(raised.value) == f"unknown environment variable {variable}{hint}"

    def test_graphite_options_mean_nothing_without_a_receiver(self) -> None:
        assert load_config({"graphite_prefix": "x", "graphite_protocol": "udp"}).graphite is None


class TestErrorsSayWhereTheyAre:
    def test_on_the_command_line(self) -> None:
        assert refusal({"net_msg_max": "many"}) == '--net-msg-max: "many" is not a whole number'

    def test_among_the_arguments(self) -> None:
        assert (
            refusal({"apps": ("jobs",)})
            == 'MODULE:APP: "jobs" is not an application: expected MODULE:ATTRIBUTE or FILE.lua'
        )

    def test_in_the_environment(self) -> None:
        message = refusal(environment={"IPROTO_SERVER_ALLOW_GUEST": "maybe"})
        assert message == 'IPROTO_SERVER_ALLOW_GUEST: "maybe" is neither true nor false'

    def test_in_the_file(self, tmp_path: Path) -> None:
        message = refusal_of_file(tmp_path, "net_msg_max = 1")
        assert message == "server.toml: net_msg_max: 1 is out of bounds: from 2 to 2147483647"

    def test_a_weaker_place_is_not_looked_at(self, tmp_path: Path) -> None:
        file = toml(tmp_path, "net_msg_max = 'many'")
        assert load_config({"net_msg_max": "5"}, {"IPROTO_SERVER_NET_MSG_MAX": "few"}, file).net_msg_max == 5

    def test_an_unknown_key_gets_a_hint(self, tmp_path: Path) -> None:
        message = refusal_of_file(tmp_path, 'work-dir = "/tmp"')
        assert message == 'server.toml: unknown key "work-dir", did you mean "work_dir"?'

    def test_an_unknown_key_like_no_other(self, tmp_path: Path) -> None:
        assert refusal_of_file(tmp_path, "vinyl = 1") == 'server.toml: unknown key "vinyl"'

    def test_a_file_that_is_not_toml(self, tmp_path: Path) -> None:
        message = refusal_of_file(tmp_path, "listen 3301")
        assert message.startswith("server.toml is not a TOML file: ")
        assert "line 1" in message

    def test_a_file_that_is_not_text(self, tmp_path: Path) -> None:
        path = tmp_path / "server.toml"
        path.write_bytes(b"\xff\xfe")
        with pytest.raises(ConfigError, match="is not a TOML file"):
            load_config(file=path)

    def test_a_file_that_is_nested_too_deeply(self, tmp_path: Path) -> None:
        message = refusal_of_file(tmp_path, f"listen = {'[' * 5000}")
        assert message == "server.toml is not a TOML file: it is nested too deeply"

    @pytest.mark.parametrize("text", ["", "# only a comment"])
    def test_an_empty_file_without_the_name_of_a_format(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "server"
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"server has no options: they are expected in TOML; .* \.yml$"):
            load_config(file=path)

    def test_yaml_in_a_file_without_the_name_of_a_format(self, tmp_path: Path) -> None:
        path = tmp_path / "server"
        path.write_text("wal: {mode: none}")
        with pytest.raises(ConfigError, match=r"is not a TOML file: .*; the name of a YAML file ends in"):
            load_config(file=path)

    def test_an_empty_name_of_a_file(self) -> None:
        with pytest.raises(ConfigError, match=r"^--config: the name of a file is expected: FILE\.toml"):
            load_config(file=Path(""))

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"^cannot read .*nowhere.toml: No such file or directory$"):
            load_config(file=tmp_path / "nowhere.toml")
