"""`python -m pyspark_tarantool` lists the jobs and runs them."""

from __future__ import annotations

from importlib import import_module

import pytest

from pyspark_tarantool.__main__ import JOBS, main


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_it_lists_the_jobs(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed and summary in printed for name, summary in JOBS.items())


@pytest.mark.parametrize("name", JOBS)
def test_each_job_is_a_command_with_that_summary(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = getattr(import_module(f"pyspark_tarantool.{name}"), name)
    assert command.short_help == JOBS[name]
    assert main([name, "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"Usage: pyspark_tarantool.{name} ")
    assert JOBS[name].split(",")[0] in printed


def test_an_unknown_job_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backlogs", "."]) == 2
    known = ", ".join(JOBS)
    assert capsys.readouterr().err == f"pyspark_tarantool: there is no job 'backlogs': there are {known}\n"
