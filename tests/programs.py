"""Programs that are not Python packages, and what to do when one is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def require_program(name: str, debian_package: str) -> str:
    """Find a program, or skip the test that asks; with `CI=true` in the environment the test fails instead.

    Args:
        name: The program, as on a command line.
        debian_package: The Debian package that has it, for the message.

    Returns:
        The program's absolute path.
    """
    path = shutil.which(name)
    if path is None:
        missing(f"{name} is not installed: apt-get install {debian_package}")
    return path


def require_perl_module(name: str, debian_package: str) -> str:
    """Find Perl with a module, or skip the test that asks, or fail it, as `require_program` does.

    Args:
        name: The module, `MR::Tarantool::Box`.
        debian_package: The Debian package that has it, for the message.

    Returns:
        Perl's absolute path.
    """
    program = require_program("perl", "perl")
    file = name.replace("::", "/") + ".pm"
    search = ["-e", 'exit !grep { -e "$_/$ARGV[0]" } @INC', file]
    if subprocess.run([program, *search], check=False).returncode:
        missing(f"Perl's {name} is not installed: apt-get install {debian_package}")
    return program


def missing(what: str) -> NoReturn:
    """Skip the test for want of something that can be installed; with `CI=true` fail it.

    Args:
        what: What is missing and how to get it, in one line.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)
