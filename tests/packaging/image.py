"""The container image without a container engine: the Dockerfile's steps on a copy of this system.

The copy is an overlay over the root directory, in namespaces of its own, so nothing is written into the
system and no other machine can connect. It needs root. The steps that install Debian's packages are left out:
what they install is on this machine: a C compiler, among others.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest
from dockerfile_parse import DockerfileParser

from iproto_server.testing.logged_process import LoggedProcess
from tests.packaging.project import REPOSITORY
from tests.programs import require_program

DOCKER: Final = REPOSITORY / "packaging" / "docker"
DEBIAN_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LIBRARIES: Final = sysconfig.get_path("purelib")
OFFLINE: Final = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
"""pip finds setuptools and the libraries in this Python's packages."""

KEPT: Final = ("CMD", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "VOLUME")
"""Instructions that change no file."""

_MOUNT: Final = """\
set -e
ip link set lo up
mount -t overlay overlay -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" "$1/merged"
mount --rbind /dev "$1/merged/dev"
mount -t proc proc "$1/merged/proc"
directory=$1 user=$2
shift 2
exec chroot --userspec="$user" --groups= "$directory/merged" "$@"
"""


class Stage:
    """A stage of the Dockerfile.

    Parameters:
        directory: where its files are kept.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.variables: dict[str, str] = {}
        self.work_dir = "/"
        self.user = "0:0"
        self.settings: dict[str, str] = {}
        for name in ("upper", "work", "merged"):
            (directory / name).mkdir(parents=True)
        self._prepare()

    def _prepare(self) -> None:
        """Remove what a fresh Debian does not have, and let every user run this Python."""
        self.run(
            "userdel tarantool || true; groupdel tarantool || true; rm -rf /var/lib/tarantool /opt/tarantool"
        )
        for path in (Path(sys.base_prefix), Path(LIBRARIES)):
            self.run(f"chmod o+rx {' '.join(str(parent) for parent in path.parents)}")

    def command(self, words: Sequence[str], variables: Mapping[str, str], user: str) -> list[str]:
        """The command that runs a program in the stage's files, as process 1."""
        environment = [f"{name}={value}" for name, value in variables.items()]
        isolated = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child"]
        mounted = ["sh", "-c", _MOUNT, "sh", str(self.directory), user]
        return [*isolated, *mounted, "env", "-i", "-C", self.work_dir, *environment, *words]

    def run(self, script: str) -> None:
        """Run a step of the build."""
        path = f"{sys.base_prefix}/bin:{DEBIAN_PATH}"
        variables = {"PATH": path, "PYTHONPATH": LIBRARIES, **OFFLINE, **self.variables}
        command = self.command(["sh", "-ec", script], variables, "0:0")
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"

    def path(self, name: str) -> Path:
        """A file of the stage, as this process sees it."""
        return self.directory / "upper" / name.lstrip("/")


def build_image(directory: Path) -> Stage:
    """Carry out the steps of the Dockerfile.

    Parameters:
        directory: where the files of its stages are kept.

    Returns:
        The last stage.
    """
    _require_namespaces(directory)
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    parser = DockerfileParser(path=str(DOCKER / "Dockerfile"), cache_content=True)
    for step in parser.structure:
        instruction, value = step["instruction"], step["value"]
        if instruction == "COMMENT":
            continue
        if instruction == "FROM":
            words = value.split()
            assert words[0] == "debian:trixie-slim"
            name = words[2] if len(words) == 3 else "last"
            stage = stages[name] = Stage(directory / name)
            continue
        assert stage is not None
        _carry_out(instruction, value, stage, stages)
    return stages["last"]


def _carry_out(instruction: str, value: str, stage: Stage, stages: Mapping[str, Stage]) -> None:
    if instruction == "RUN":
        if not value.startswith("apt-get update"):
            stage.run(value)
    elif instruction == "COPY":
        source, target = value.split()[-2:]
        if value.startswith("--from="):
            other = stages[value.split()[0].removeprefix("--from=")]
            shutil.copytree(other.path(source), stage.path(target), symlinks=True)
        else:
            assert source == "."
            copy_context(stage.path(target))
    elif instruction == "ENV":
        name, _, text = value.partition("=")
        stage.variables[name] = text
    elif instruction == "WORKDIR":
        stage.work_dir = value
    elif instruction == "USER":
        stage.user = value
    else:
        assert instruction in ("CMD", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "VOLUME"), (
            instruction
        )
        stage.settings[instruction] = value


def copy_context(target: Path) -> None:
    """Copy what the file beside the Dockerfile lets into the build."""
    lines = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    allowed = [line.removeprefix("!") for line in lines if line.startswith("!")]
    ignored = shutil.ignore_patterns(*(line.removeprefix("**/") for line in lines if line.startswith("**/")))
    target.mkdir(parents=True)
    for name in allowed:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignored)
        else:
            shutil.copy(source, target)


def _require_namespaces(directory: Path) -> None:
    """Skip the test where this process may not mount."""
    for program in ("unshare", "nsenter"):
        require_program(program, "util-linux")
    require_program("ip", "iproute2")
    for name in ("upper", "work", "merged"):
        (directory / "probe" / name).mkdir(parents=True)
    options = ",".join(
        f"{key}={directory}/probe/{name}" for key, name in (("upperdir", "upper"), ("workdir", "work"))
    )
    mount = f"mount -t overlay overlay -o lowerdir=/,{options} {directory}/probe/merged"
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--net", "--fork", "sh", "-c", mount],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"this process may not mount an overlay: {done.stderr.strip()}")


class Container:
    """A running container.

    Parameters:
        image: the last stage of the build.
        words: arguments instead of those of CMD; None: these.
        variables: environment variables, as with `docker run --env`.
    """

    def __init__(self, image: Stage, words: Sequence[str] | None, variables: Mapping[str, str]) -> None:
        self._image = image
        self._variables = {"PYTHONPATH": LIBRARIES, **image.variables, **variables}
        entry, usual = (_exec_form(image.settings[name]) for name in ("ENTRYPOINT", "CMD"))
        command = image.command([*entry, *(usual if words is None else words)], self._variables, image.user)
        self.process = LoggedProcess(command, cwd=image.directory, env=dict(os.environ))

    def execute(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program in it, as `docker exec` does."""
        user, group = self._image.user.split(":")
        environment = [f"{name}={value}" for name, value in self._variables.items()]
        target = str(self._first_process())
        enter = ["nsenter", "--target", target, "--mount", "--pid", "--net", "--root", "--setuid", user]
        return subprocess.run(
            [*enter, "--setgid", group, "env", "-i", "-C", self._image.work_dir, *environment, *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def health(self) -> subprocess.CompletedProcess[str]:
        """Check its health as the image says."""
        _, _, command = self._image.settings["HEALTHCHECK"].partition("CMD")
        return self.execute(*_exec_form(command))

    def stop(self) -> int:
        """Stop it as `docker stop` does, and return the exit status."""
        os.kill(self._first_process(), getattr(signal, self._image.settings["STOPSIGNAL"]))
        return self.process.wait()

    def _first_process(self) -> int:
        pid = self.process.pid
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(child)

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.running:
            os.kill(self._first_process(), signal.SIGKILL)
            self.process.wait()


def _exec_form(value: str) -> list[str]:
    words: list[str] = json.loads(value)
    return words
