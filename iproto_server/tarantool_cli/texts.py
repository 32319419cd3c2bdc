"""What `iproto-tarantool` says of itself."""

from __future__ import annotations

from iproto_server.lua.functions.process import announced_version, compiler, platform_name
from iproto_server.program_version import PROGRAM_VERSION

_HELP = """\
Run a script in Lua, as Tarantool does

Usage: tarantool [OPTIONS] [SCRIPT [ARGS]]

ARGS are for the script. Without a script, one is read from standard input; on a terminal, a console opens.
  -h, --help     show this help
  -v, --version  show the version
  -e CODE        run the Lua code first; may be repeated
  -l NAME        load the module with `require` first, into a global variable of its name
  -i             open a console after the script
  --             end of the options
  -              read the script from standard input

This is iproto-server's Lua; its guide is docs/LUA.md."""


def help_text() -> str:
    """The answer to `--help`."""
    return _HELP


def version_text() -> str:
    """The answer to `--version`: the lines of Tarantool's, and one more."""
    return "\n".join(
        (
            f"Tarantool {announced_version().decode()}",
            f"Target: {platform_name().decode()}",
            "Build options: ",
            f"Compiler: {compiler().decode()}",
            "C_FLAGS:",
            "CXX_FLAGS:",
            f"Provided by: iproto-server {PROGRAM_VERSION}",
        )
    )
