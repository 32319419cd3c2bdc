"""Where the configuration comes from, and what it may say."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from iproto_server.config.address import Address
from iproto_server.config.config import Config, ConfigError, GraphiteConfig, load_config
from iproto_server.config.option_parsers import parse_size
from iproto_server.config.options import OPTIONS

UUID = "b8fb2b3c-2d1e-4c5e-9d61-0b6a3c0e5f11"


def toml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "server.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(arguments: dict[str, object] | None = None, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(arguments, environment)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def refusal_of_file(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(file=toml(tmp_path, text))
    return str(caught.value).replace(f"{tmp_path}/", "")


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
            == 'MODULE:APP: "jobs" is not an application: expected MODULE:ATTRIBUTE'
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


class TestValues:
    @pytest.mark.parametrize(
        ("name", "value", "reason"),
        [
            ("listen", ("nonsense",), "is not an address"),
            ("listen", ("1?transport=tls",), '"1": the transport "tls" is neither plain nor ssl'),
            ("announce_version", "2.11", '"2.11" is not a version: expected MAJOR.MINOR.PATCH'),
            ("announce_version", 2.11, '"2.11" is not a version: expected MAJOR.MINOR.PATCH'),
            ("announce_version", "2.11.0-1", '"2.11.0-1" is not a version'),
            ("announce_version", "٢.1.0", '"٢.1.0" is not a version'),
            ("announce_version", "10.11.12", '"10.11.12" has no room in the greeting: at most 7 characters'),
            (
                "announce_version",
                "2.256.0",
                '"2.256.0" is not a version: clients keep each of its numbers in a',
            ),
            ("auth_type", "md5", 'unknown authentication method "md5": choose chap-sha1 or pap-sha256'),
            ("listen", ("unix:/a", "unix:/a"), "unix:/a is given twice"),
            ("apps", ("a:b", "a:b"), "a:b is given twice"),
            ("apps", ("a:b:c",), "expected MODULE:ATTRIBUTE"),
            ("listen", ("1?mode=0660",), '"1": the parameter "mode" is for unix sockets'),
            ("listen", ("unix:/a?mode=0660&mode=0600",), 'the parameter "mode" is given twice'),
            ("listen", ("unix:/a?mode=rw",), 'the mode "rw" is not three octal digits, such as 0660'),
            ("listen", ("unix:/a?mode=",), 'the mode "" is not three octal digits'),
            ("listen", ("unix:/a?mode=0888",), 'the mode "0888" is not three octal digits'),
            ("listen", ("unix:/a?mode=4755",), 'the mode "4755" is not three octal digits'),
            ("listen", ("unix:/a?mode=0660&transport=tls",), 'the transport "tls" is neither plain nor ssl'),
            ("max_connections", "0", "0 is out of bounds: from 1 to"),
            ("max_connections", "many", '"many" is not a whole number'),
            ("max_connections_per_address", "-1", "-1 is out of bounds: from 0 to"),
            ("max_connections_per_user", "1.5", '"1.5" is not a whole number'),
            ("idle_timeout", "-1", "expected seconds, from 0 to"),
            ("idle_timeout", "nan", "expected seconds, from 0 to"),
            ("net_msg_max", "1", "out of bounds"),
            ("net_msg_max", "1.5", "not a whole number"),
            ("write_high_water", "127", "out of bounds"),
            ("write_high_water", "-1", "not a number of bytes"),
            ("max_frame", "3G", "out of bounds: from 1024 to 2147483648"),
            ("max_frame", "big", "such as 16320, 64K or 256M"),
            ("memtx_memory", "16777215", "out of bounds: from 16777216 to 9223372036854775807"),
            ("memtx_memory", "0", "out of bounds"),
            ("memtx_memory", "unlimited", "such as 16320, 64K or 256M"),
            ("wal_mode", "always", 'unknown wal mode "always": choose none, write or fsync'),
            ("wal_dir", " ", "is not a text"),
            ("wal_max_size", "1", "out of bounds: from 2 to"),
            ("wal_max_size", "1.5G", "not a number of bytes"),
            ("force_recovery", "maybe", "is neither true nor false"),
            ("memtx_dir", "", "is empty"),
            ("checkpoint_interval", "-1", "expected seconds, from 0 to 3153600000"),
            ("checkpoint_interval", "inf", "expected seconds, from 0 to 3153600000"),
            ("checkpoint_interval", "daily", "expected seconds, from 0 to 3153600000"),
            ("checkpoint_count", "0", "out of bounds: from 1 to"),
            ("checkpoint_count", "two", "is not a whole number"),
            ("checkpoint_wal_threshold", "0", "out of bounds: from 1 to"),
            ("checkpoint_wal_threshold", "never", "is not a number of bytes"),
            ("snap_io_rate_limit", "-5", "expected megabytes per second, 0 for no limit"),
            ("snap_io_rate_limit", "inf", "expected megabytes per second, 0 for no limit"),
            ("snap_io_rate_limit", "10M", "expected megabytes per second, 0 for no limit"),
            ("instance_uuid", "12", "is not a UUID"),
            ("instance_uuid", "00000000-0000-0000-0000-000000000000", "all zeros"),
            ("log_level", "8", 'unknown log level "8": choose fatal, '),
            ("log_level", "loud", "verbose or debug, or a number from 0 to 7"),
            ("log_format", "xml", 'unknown log format "xml": choose plain or json'),
            ("graphite", "2003", "expected HOST:PORT"),
            ("graphite", "carbon", "is not an address"),
            ("graphite", "carbon:0", "expected HOST:PORT"),
            ("graphite", "unix:/carbon", "expected HOST:PORT"),
            ("http", "8080x", "is not an address"),
            ("http", "127.0.0.1:8080?transport=tls", 'the transport "tls" is neither plain nor ssl'),
            ("http", "", "is empty"),
            ("http_behind_proxy", "maybe", "is neither true nor false"),
            ("metrics_listen", "127.0.0.1", "is not an address"),
            ("metrics_token_file", "", "is empty"),
            ("metrics_max_queues", "-1", "out of bounds: from 0 to"),
            ("metrics_max_queues", "all", "is not a whole number"),
            ("instance_name", "", "is empty"),
            ("instance_name", "-queue", "is not an instance name"),
            ("instance_name", "my queue", "is not an instance name"),
            ("instance_name", 'queue"', "is not an instance name"),
            ("instance_name", "q" * 64, "is not an instance name"),
            ("graphite_protocol", "pickle", 'unknown graphite protocol "pickle": choose tcp or udp'),
            ("graphite_prefix", "", "is empty"),
            ("graphite_prefix", "a..b", "is not a metric prefix"),
            ("graphite_prefix", "../etc", "is not a metric prefix"),
            ("graphite_interval", "0", "from 0.1 to 86400"),
            ("graphite_interval", "nan", "from 0.1 to 86400"),
            ("graphite_interval", "soon", "from 0.1 to 86400"),
        ],
    )
    def test_a_bad_value_is_refused(self, name: str, value: object, reason: str) -> None:
        message = refusal({name: value})
        assert reason in message
        assert message.startswith("MODULE:APP: " if name == "apps" else f"--{name.replace('_', '-')}: ")

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("listen = []", "the list is empty"),
            ("listen = true", "true is not a text"),
            ("listen = [1.5]", "1.5 is not a text"),
            ("work_dir = 5", "5 is not a text"),
            ("wal_dir = true", "true is not a text"),
            ("memtx_dir = 1", "1 is not a text"),
            ("wal_mode = false", "unknown wal mode false: choose none, write or fsync"),
            ("wal_max_size = 1.5", "1.5 is not a number of bytes"),
            ("force_recovery = 1", "1 is neither true nor false"),
            ("checkpoint_interval = true", "true is not an interval"),
            ("checkpoint_count = 1.0", "1.0 is not a whole number"),
            ("checkpoint_wal_threshold = -1", "-1 is not a number of bytes"),
            ("snap_io_rate_limit = true", "true is not a rate"),
            ("allow_guest = 1", "1 is neither true nor false"),
            ("net_msg_max = true", "true is not a whole number"),
            ("net_msg_max = 5.0", "5.0 is not a whole number"),
            ("max_frame = true", "true is not a number of bytes"),
            ("memtx_memory = true", "true is not a number of bytes"),
            ("memtx_memory = -1", "-1 is not a number of bytes"),
            ("graphite_interval = true", "true is not an interval"),
            ("log_level = true", "unknown log level true"),
            ("instance_uuid = 1", "1 is not a UUID"),
        ],
    )
    def test_a_wrong_toml_type_is_refused(self, tmp_path: Path, line: str, reason: str) -> None:
        assert reason in refusal_of_file(tmp_path, line)

    @pytest.mark.parametrize("name", ["work_dir", "wal_dir", "memtx_dir"])
    def test_a_directory_that_is_a_file_is_refused(self, name: str, tmp_path: Path) -> None:
        file = toml(tmp_path, "")
        assert refusal({name: str(file)}) == f'--{name.replace("_", "-")}: "{file}" is not a directory'

    def test_even_if_only_the_work_dir_shows_that_it_is(self, tmp_path: Path) -> None:
        file = toml(tmp_path, "")
        message = refusal({"work_dir": str(tmp_path)}, {"IPROTO_SERVER_WAL_DIR": file.name})
        assert message == f'IPROTO_SERVER_WAL_DIR: "{file}" is not a directory'

    def test_a_work_dir_may_be_made_later(self, tmp_path: Path) -> None:
        assert load_config({"work_dir": str(tmp_path / "new")}).work_dir == tmp_path / "new"

    def test_a_rate_of_0_is_no_limit(self) -> None:
        assert load_config({"snap_io_rate_limit": "0"}).snap_io_rate_limit is None

    def test_two_free_ports_are_two_addresses(self) -> None:
        assert len(load_config({"listen": ("127.0.0.1:0", "127.0.0.1:0")}).listen) == 2

    @pytest.mark.parametrize(
        ("text", "name"),
        [("0", "fatal"), ("4", "warn"), ("5", "info"), ("7", "debug"), ("INFO", "info"), ("warning", "warn")],
    )
    def test_log_levels_have_tarantools_names_and_numbers(self, text: str, name: str) -> None:
        assert load_config({"log_level": text}).log_level == name

    @pytest.mark.parametrize(
        ("text", "size"),
        [
            (16320, 16320),
            ("16320", 16320),
            ("64K", 65536),
            ("64k", 65536),
            ("64KiB", 65536),
            ("64 KB", 65536),
            ("1M", 1048576),
            ("2G", 2147483648),
            ("10b", 10),
        ],
    )
    def test_sizes(self, text: object, size: int) -> None:
        assert parse_size(text) == size


class TestAllLocal:
    """What the rule about guest asks: can anybody but this machine connect?"""

    def test_loopback_and_unix_sockets(self) -> None:
        local = ("127.0.0.1:1", "[::1]:1", "localhost:0", "unix:/x")
        assert load_config({"listen": local, "listen_1_5": local}).all_local

    @pytest.mark.parametrize("address", ["3301", "0.0.0.0:3301", "example.net:3301"])
    def test_one_other_address_is_enough(self, address: str) -> None:
        assert not load_config({"listen": ("127.0.0.1:1", address)}).all_local
        assert not load_config({"listen": ("127.0.0.1:1",), "listen_1_5": (address,)}).all_local


class TestDirectories:
    """Logs and snapshots are in the work directory unless they have one of their own."""

    def test_both_are_the_work_directory(self) -> None:
        config = load_config({"work_dir": "/srv/jobs"})
        assert config.log_directory == config.snapshot_directory == Path("/srv/jobs")

    def test_relative_ones_start_from_it(self) -> None:
        config = load_config({"work_dir": "/srv/jobs", "wal_dir": "logs", "memtx_dir": "../snapshots"})
        assert config.log_directory == Path("/srv/jobs/logs")
        assert config.snapshot_directory == Path("/srv/jobs/../snapshots")

    def test_absolute_ones_do_not(self) -> None:
        config = load_config({"work_dir": "/srv/jobs", "wal_dir": "/fast/logs", "memtx_dir": "/big"})
        assert (config.log_directory, config.snapshot_directory) == (Path("/fast/logs"), Path("/big"))

    def test_without_a_work_directory_it_is_the_current_one(self) -> None:
        assert load_config({"wal_dir": "logs"}).log_directory == Path("logs")


class TestHttp:
    TLS = "?transport=ssl&ssl_key_file=a.key&ssl_cert_file=a.crt"

    def test_its_options(self) -> None:
        config = load_config(
            {
                "http": "127.0.0.1:8080",
                "metrics_listen": "[::1]:8081",
                "metrics_token_file": "token",
                "metrics_max_queues": "5",
                "instance_name": "queue-1.example",
                "work_dir": "/var/lib/jobs",
            },
            {"IPROTO_SERVER_HTTP_BEHIND_PROXY": "1"},
        )
        assert config.http_addresses == (Address("127.0.0.1", 8080), Address("::1", 8081))
        assert config.http_behind_proxy
        assert config.token_file == Path("/var/lib/jobs/token")
        assert (config.metrics_max_queues, config.instance_name) == (5, "queue-1.example")
        assert config.http_problem is None

    def test_it_is_off_by_default(self) -> None:
        config = load_config()
        assert config.http_addresses == ()
        assert config.http_problem is None
        assert config.token_file is None

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"http": "localhost:8080"}, ""),
            ({"http": "unix:/run/http.sock"}, ""),
            ({"http": "8080"}, "it needs TLS"),
            ({"http": "10.0.0.1:8080", "metrics_token_file": "token"}, "it needs TLS"),
            ({"http": "10.0.0.1:8080", "metrics_listen": "127.0.0.1:8081"}, "it needs TLS"),
            ({"http": "10.0.0.1:8080" + TLS}, "can reach the metrics"),
            ({"http": "10.0.0.1:8080" + TLS, "metrics_token_file": "token"}, ""),
            ({"http": "10.0.0.1:8080" + TLS, "metrics_listen": "10.0.0.1:8081"}, ""),
            ({"http": "10.0.0.1:8080", "http_behind_proxy": True}, "can reach the metrics"),
            ({"http": "127.0.0.1:8080", "http_behind_proxy": True}, "can reach the metrics"),
            ({"http": "127.0.0.1:8080", "http_behind_proxy": True, "metrics_token_file": "token"}, ""),
            ({"metrics_listen": "10.0.0.1:8081"}, ""),
        ],
    )
    def test_other_machines_need_tls_and_a_right_to_the_metrics(
        self, options: dict[str, object], problem: str
    ) -> None:
        told = load_config(options).http_problem
        assert problem in (told or "")
        assert (told is None) == (problem == "")


def test_the_defaults_that_help_shows_are_the_real_ones() -> None:
    real = Config()
    for option in OPTIONS:
        if option.name in (
            "net_msg_max",
            "max_frame",
            "max_frame_before_login",
            "max_unsent",
            "write_high_water",
            "wal_max_size",
            "checkpoint_count",
        ):
            assert parse_size(option.default) == getattr(real, option.name)
    graphite = GraphiteConfig(Address("carbon", 2003))
    shown = {option.name: option.default for option in OPTIONS}
    assert (float(shown["checkpoint_interval"]), real.checkpoint_interval) == (3600.0, 3600.0)
    assert float(shown["stop_timeout"]) == real.stop_timeout
    assert float(shown["login_timeout"]) == real.login_timeout == 60
    assert float(shown["frame_timeout"]) == real.frame_timeout == 60
    assert (shown["max_buffered"], real.max_buffered_bytes) == ("twice --max-frame", 2 * real.max_frame)
    assert shown["checkpoint_wal_threshold"] == "10^18, which is never"
    assert real.checkpoint_wal_threshold == 10**18
    assert (shown["snap_io_rate_limit"], real.snap_io_rate_limit) == ("no limit", None)
    assert (shown["memtx_memory"], real.memtx_memory) == ("no limit", None)
    assert int(shown["metrics_max_queues"]) == real.metrics_max_queues
    assert shown["listen"] == str(real.listen[0])
    assert (shown["wal_mode"], shown["log_level"], shown["log_format"]) == (
        real.wal_mode,
        real.log_level,
        real.log_format,
    )
    assert (shown["graphite_protocol"], shown["graphite_prefix"], float(shown["graphite_interval"])) == (
        graphite.protocol,
        graphite.prefix,
        graphite.interval,
    )
