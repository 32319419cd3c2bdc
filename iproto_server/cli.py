"""The `iproto-server` command.

Exit status 0: served until SIGTERM or SIGINT; 1: cannot start (an application that cannot be imported, an
address in use); 2: invalid command line or configuration. Each error is one line on stderr.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from iproto_server.compiled_module import NotCompiledError
from iproto_server.config.config import Config, ConfigError, load_config
from iproto_server.config.option import Option
from iproto_server.config.option_parsers import is_lua_file
from iproto_server.config.options import OPTIONS
from iproto_server.descriptors import NEEDED, raise_descriptor_limit
from iproto_server.importer import ApplicationImportError, ApplicationModules
from iproto_server.logging.log_setup import configure_logs
from iproto_server.program_version import PROGRAM_VERSION
from iproto_server.standard_streams import open_standard_streams

if TYPE_CHECKING:
    from iproto_server.config.socket_activation import PassedSockets

PROGRAM = "iproto-server"

_TOOLS = {
    **dict.fromkeys(("cat", "check", "play"), "iproto_server.tools.files.file_commands"),
    **dict.fromkeys(("backup", "restore"), "iproto_server.tools.backup.backup_commands"),
    **dict.fromkeys(
        ("backlog", "call", "sessions", "status", "tasks", "top"),
        "iproto_server.tools.operators.view_commands",
    ),
    **dict.fromkeys(
        ("bury", "delete", "move", "release", "requeue"), "iproto_server.tools.operators.repair_commands"
    ),
    **dict.fromkeys(
        ("configure", "drain", "kick", "pause", "resume"), "iproto_server.tools.operators.queue_commands"
    ),
    **dict.fromkeys(
        ("schedule", "schedules", "unschedule"), "iproto_server.tools.operators.schedule_commands"
    ),
    "connect": "iproto_server.tools.console.connect_command",
    "dashboard": "iproto_server.tools.dashboard",
}
"""The modules of the other commands."""

_COLLECT_AFTER: Final = 10_000, 0, 120
"""New objects before a garbage collection of the youngest ones, which takes a millisecond or two.

Python's default of 700 costs a tenth of a cycle of the queue, and higher values gain nothing more. Every
second collection also looks at what the one before has left; by default, every eleventh looks at what ten
have left. The last number keeps Python's rate of full collections: one for about 1,200,000 new objects.
Applications are imported later, so they may set other values.
"""

logger = logging.getLogger("iproto_server.cli")

_EXAMPLES = """\
iproto-server serve queue_lua_compat.tutorial:app --listen 127.0.0.1:3301 --work-dir ./data
iproto-server serve jobs:app --listen unix:/run/jobs.sock --listen 127.0.0.1:3301
iproto-server serve jobs:app --work-dir ./data --wal-mode fsync --checkpoint-interval 600
iproto-server serve jobs:app --graphite graphite.example.net:2003 --graphite-protocol udp
IPROTO_SERVER_LISTEN=127.0.0.1:3301 iproto-server serve --config /etc/iproto-server.toml
iproto-server serve jobs:app --config config.yaml --instance-name storage-1"""

_SOURCES = """\
Each option can also be set in the environment (IPROTO_SERVER_WORK_DIR for --work-dir, IPROTO_SERVER_APPS
for the applications; lists with commas) and in a TOML file (work_dir = "./data", listen =
["127.0.0.1:3301"]), or in the YAML file of a Tarantool 3 cluster. The command line overrides the environment,
which overrides the file. Sockets that systemd passes replace the default addresses. BYTES may end in K, M or
G."""


def main(arguments: Sequence[str] | None = None, defaults: Config | None = None) -> int:
    """Run the command.

    Parameters:
        arguments: the command line without the program's name; None takes the process's own.
        defaults: the options of `serve` that nothing else sets, and users beside those of a file.

    Returns:
        The exit status.
    """
    open_standard_streams()
    try:
        status = command.main(args=arguments, prog_name=PROGRAM, standalone_mode=False, obj=defaults)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _refuse(error.format_message(), error.exit_code)
    except ConfigError as error:
        return _refuse(str(error), 2)
    except (ApplicationImportError, NotCompiledError) as error:
        logger.debug("the import failed", exc_info=error)
        return _refuse(str(error), 1)
    except click.Abort:
        return _refuse("interrupted", 1)
    return int(status or 0)


class _Commands(click.Group):
    """The commands. All but `serve` are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_TOOLS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _TOOLS:
            return super().get_command(ctx, cmd_name)
        tool: click.Command = getattr(import_module(_TOOLS[cmd_name]), cmd_name)
        return tool


class _ServeCommand(click.Command):
    """A command whose `--help` groups the options under headings and has examples."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shown = {option.name: option for option in OPTIONS}
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            # The argument for applications is described by the text above the options.
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                option = shown.get(parameter.name or "")
                groups.setdefault(option.group if option else "Other", []).append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Where options come from"):
            formatter.write_text(" ".join(_SOURCES.split()))
        with formatter.section("Examples"):
            for line in _EXAMPLES.splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def _show_version(context: click.Context, parameter: click.Parameter, is_asked_for: bool) -> None:
    """Print the version and end, if that was asked for."""
    if not is_asked_for or context.resilient_parsing:
        return
    click.echo(f"{PROGRAM} {PROGRAM_VERSION}")
    context.exit()


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def command() -> None:
    """A server that speaks Tarantool's binary protocol, with stored procedures in Python."""


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _configuration_options(function: _Function) -> _Function:
    """Add all options of OPTIONS to a command. Values stay text, because `load_config` parses all sources."""
    for option in reversed(OPTIONS):
        function = _parameter(option)(function)
    return function


def _parameter(option: Option) -> Callable[[_Function], _Function]:
    if option.name == "apps":
        return click.argument("apps", nargs=-1, metavar=f"[{option.metavar}]...")
    text = f"{option.help}  [default: {option.default}]" if option.default else option.help
    if not option.metavar:
        return click.option(f"{option.flag}/--no-{option.flag[2:]}", option.name, default=None, help=text)
    return click.option(
        option.flag, option.name, metavar=option.metavar, multiple=option.many, default=None, help=text
    )


@command.command(cls=_ServeCommand, short_help="Load applications and serve them.")
@_configuration_options
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    envvar="IPROTO_SERVER_CONFIG",
    type=click.Path(path_type=Path),
    help="Read options from this file: FILE.toml, or FILE.yaml as Tarantool 3 has it.",
)
@click.pass_obj
def serve(defaults: Config | None, /, config_file: Path | None, **arguments: object) -> int:
    """Load the applications and serve them to Tarantool clients until SIGTERM or SIGINT.

    SIGHUP reloads the applications, SIGUSR1 takes a snapshot.

    An application is given as MODULE:APP, the module's dotted name and the variable that holds the
    iproto_server.Application. Modules are also searched for in the current directory.
    """
    limit = raise_descriptor_limit(NEEDED)
    if limit < NEEDED:
        return _refuse(
            f"the limit of open files is {limit}, and the server needs at least {NEEDED}: raise it with "
            "ulimit -n, or with LimitNOFILE in a unit of systemd",
            2,
        )
    sockets = _passed_sockets()
    config = load_config(arguments, os.environ, config_file, sockets, defaults)
    try:
        if config.log_file is not None:
            config.log_file.parent.mkdir(parents=True, exist_ok=True)
        configure_logs(config.log_level, config.log_format, file=config.log_file)
    except OSError as error:
        return _refuse(f"cannot open the log {config.log_file}: {error.strerror}", 1)
    for warning in config.warnings:
        logger.warning("%s", warning)
    if sockets is not None:
        for unused in sockets.unused:
            logger.warning(
                "the passed socket %s (%s) is not used, because %s is given",
                unused.address,
                unused.name,
                unused.origin,
            )
    scripts = [app for app in config.apps if is_lua_file(app)]
    with _current_directory_importable():
        modules = ApplicationModules([app for app in config.apps if app not in scripts])
        if scripts:
            return _serve_lua(
                scripts,
                config,
                lambda defaults: load_config(arguments, os.environ, config_file, sockets, defaults),
                modules,
            )
        return _serve(config, modules)


def _passed_sockets() -> PassedSockets | None:
    """Return the listening sockets that the service manager has passed. Raises ConfigError."""
    if "LISTEN_PID" not in os.environ and "LISTEN_FDS" not in os.environ:
        return None
    from iproto_server.config.socket_activation import passed_sockets

    try:
        return passed_sockets(os.environ, os.getpid())
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _serve_lua(
    scripts: Sequence[str],
    config: Config,
    configured: Callable[[Config], Config],
    modules: ApplicationModules,
) -> int:
    _ignore_signals()
    from iproto_server.lua.runtime import LuaIsMissing
    from iproto_server.server.lua.lua_process import run_lua
    from iproto_server.server.service_manager import ServiceManager

    try:
        manager = ServiceManager.from_environment(os.environ, os.getpid())
        return run_lua(scripts, config, configured, modules.load(), manager)
    except LuaIsMissing as error:
        return _refuse(str(error), 1)
    except OSError as error:
        return _refuse(f"{error.strerror or error}: {error.filename}", 1)


def _ignore_signals() -> None:
    """Before the server runs, these signals are ignored instead of ending the process."""
    for number in (signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)


def _serve(config: Config, modules: ApplicationModules) -> int:
    _ignore_signals()
    # What is imported stays, so garbage collections are spared from looking at it.
    gc.disable()
    from iproto_server.errors import BoxError
    from iproto_server.lua.runtime import LuaIsMissing
    from iproto_server.server import ServiceManager, run
    from iproto_server.storage.errors import StorageError

    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()
    try:
        # No local name for the applications, because it would keep them alive after a reload.
        # The variables go before applications are imported, because these may start processes.
        manager = ServiceManager.from_environment(os.environ, os.getpid())
        manager.starting("importing the applications")
        return run(config, modules.load(), modules.load_anew, manager)
    except OSError as error:
        logger.debug("the start failed", exc_info=error)
        where = f": {error.filename}" if error.filename else ""
        return _refuse(f"{error.strerror or error}{where}", 1)
    except (StorageError, LuaIsMissing) as error:
        logger.debug("the start failed", exc_info=error)
        return _refuse(str(error), 1)
    except BoxError as error:
        logger.debug("the start failed", exc_info=error)
        return _refuse(f"the application's setup failed: {error.message}", 1)


@contextmanager
def _current_directory_importable() -> Iterator[None]:
    """Make the current directory importable, as it is not for a console script."""
    here = os.getcwd()
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        yield
    finally:
        if added and here in sys.path:
            sys.path.remove(here)


def _refuse(reason: str, status: int) -> int:
    """Print a reason on stderr, in one line, and return the exit status."""
    click.echo(f"{PROGRAM}: {' '.join(reason.split())}", err=True)
    return status
