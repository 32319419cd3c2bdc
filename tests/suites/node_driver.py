"""node-tarantool-driver's tests."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.suites.programs import environment, run
from tests.suites.results import Results

_TIMEOUT = 300.0

_SERVERS: Final = {"tarantool": "box.lua", "reserve": "box1.lua", "reserve_2": "box2.lua"}
"""Names of the containers that the tests start and kill, and the scripts of their servers."""

_PORTS: Final = {"tarantool": 33013, "reserve": 33014, "reserve_2": 33015}

_DOCKER: Final = """\
#!{python}
import os, signal, socket, subprocess, sys, time
from pathlib import Path

action, name = sys.argv[1:3]
folder = Path({folder!r}) / name
pid = folder / "pid"
if action == "start":
    script, port = {servers!r}[name]
    folder.mkdir(exist_ok=True)
    # as the image does, unless a user is named
    grant = "box.schema.user.grant('guest', 'read,write,execute', 'universe', nil, {{if_not_exists = true}})"
    init = folder / "init.lua"
    init.write_text("dofile('%s') %s" % (script, grant))
    process = subprocess.Popen(["tarantool", "init.lua"], cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=open(folder / "log", "ab"), stderr=subprocess.STDOUT)
    pid.write_text(str(process.pid))
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
elif action == "kill":
    os.kill(int(pid.read_text()), signal.SIGKILL)
print(name)
"""


def run_tests(checkout: Path, folder: Path, parts: Sequence[str]) -> Results:
    """Run the tests.

    They start and kill servers with `docker`; a program of this name does it without containers.

    Parameters:
        checkout: node-tarantool-driver's checkout, with its packages installed.
        folder: the folder of `tarantool`.
        parts: parts of titles of the tests to run, empty for all.

    Returns:
        Results by their full titles.
    """
    with tempfile.TemporaryDirectory() as temporary:
        cwd = Path(temporary)
        servers = {name: (str(checkout / "test" / file), _PORTS[name]) for name, file in _SERVERS.items()}
        docker = cwd / "docker"
        docker.write_text(_DOCKER.format(python=sys.executable, folder=temporary, servers=servers))
        docker.chmod(0o755)
        path = os.pathsep.join([temporary, str(folder), os.environ["PATH"]])
        variables = environment(folder, {"PATH": path})
        start = " && ".join(f"docker start {name}" for name in _SERVERS)
        mocha = checkout / "node_modules" / ".bin" / "_mocha"
        options = ["--reporter", "json", *(["--grep", "|".join(map(re.escape, parts))] if parts else [])]
        tests = shlex.join(["node", str(mocha), *options])
        command = (
            f"{start} && cd {shlex.quote(str(checkout))} && {tests} > {shlex.quote(str(cwd))}/results.json"
        )
        output = run(["sh", "-c", command], cwd, variables, _TIMEOUT)
        written = cwd / "results.json"
        text = written.read_text() if written.exists() else ""
    results = Results()
    _, found, report = text.partition('{\n  "stats"')
    if not found:
        results.failed["(run)"] = output.how_ended()
        return results
    records = json.loads(found + report)
    results.passed = {test["fullTitle"] for test in records["passes"]}
    results.skipped = {test["fullTitle"]: "" for test in records["pending"]}
    for test in records["failures"]:
        results.failed[test["fullTitle"]] = " ".join(test["err"].get("message", "").split())[:300]
    return results
