"""The values of options."""

from __future__ import annotations

from pathlib import Path

import pytest

from iproto_server.config.address import Address
from iproto_server.config.config import Config, GraphiteConfig, load_config
from iproto_server.config.option_parsers import parse_size
from iproto_server.config.options import OPTIONS
from tests.config.sources import refusal, refusal_of_file, toml


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
