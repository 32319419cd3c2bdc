"""Processor time and memory of a tree of processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.lib.process_tree import ProcessTreeWatch, ProcessUsage, descendants

_MEBIBYTE = 1024**2
_CHILD = """
import sys
for line in sys.stdin:
    data = bytearray(64 * 1024**2)
    del data
    for _ in range(3_000_000):
        pass
    print(flush=True)
"""
_PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_CHILD!r}, 'child'])"


def usages_of(process: subprocess.Popen[str]) -> list[ProcessUsage]:
    """Of one line."""
    assert process.stdin is not None
    assert process.stdout is not None
    with ProcessTreeWatch(process.pid) as watch:
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
    return list(watch.usages)


@pytest.mark.process
def test_each_process_is_told_apart() -> None:
    command = [sys.executable, "-c", _PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        usages_of(process)
        found = {usage.command[-1] == "child": usage for usage in usages_of(process)}
        assert descendants(process.pid)[0] == process.pid
        assert len(descendants(process.pid)) == len(found) == 2
        assert found[True].peak > 64 * _MEBIBYTE > found[False].peak > _MEBIBYTE
        assert found[True].cpu_seconds > found[False].cpu_seconds >= 0
        process.communicate()


@pytest.mark.process
def test_peaks_before_the_measurement_do_not_count() -> None:
    command = [sys.executable, "-c", _CHILD, "child"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert usages_of(process)[0].peak > 64 * _MEBIBYTE
        with ProcessTreeWatch(process.pid) as watch:
            pass
        assert 0 < watch.usages[0].peak < 64 * _MEBIBYTE
        process.communicate()
