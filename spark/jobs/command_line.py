"""The command line of jobs: common options, the session, and one-line error messages."""

from __future__ import annotations

import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from iproto_server.storage.errors import StorageError
from iproto_server.tools.command_line import ExampleCommand
from pyspark_tarantool import session as sessions
from pyspark_tarantool.jobs.error_messages import sentence_of
from pyspark_tarantool.jobs.fail_if import STATUS, Condition
from pyspark_tarantool.jobs.follow import follow
from pyspark_tarantool.jobs.job import Job
from pyspark_tarantool.jobs.outputs import FORMATS, Outputs
from pyspark_tarantool.jobs.skipped_blocks import SkippedBlocks
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import ReadOptions

if TYPE_CHECKING:
    from pyspark_tarantool.queues import QueueKind

QUEUES: Final = ("tutorial", "legacy", "tubes")

JobFunction = Callable[..., None]


class JobCommand(ExampleCommand):
    """A job on the command line.

    Attributes:
        results: The names of its results; existing ones are refused before the work begins.
        metrics: The names that it passes to `Job.check`.
    """

    results: Sequence[str] = ()
    metrics: Sequence[str] = ()

    def run(self, arguments: Sequence[str] | None = None) -> int:
        """Run the job.

        Parameters:
            arguments: The command line without the program's name; None for the command line of the process.

        Returns:
            The exit status: 0 for success; 1 for an error, reported in one line on stderr; 2 for an invalid
            command line.
        """
        try:
            status = self.main(
                args=arguments, prog_name=f"pyspark_tarantool.{self.name}", standalone_mode=False
            )
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            return error.exit_code
        except click.ClickException as error:
            return self._refuse(error.format_message(), error.exit_code)
        except click.Abort:
            return self._refuse("interrupted", 1)
        return int(status or 0)

    def _refuse(self, text: str, status: int) -> int:
        click.echo(f"pyspark_tarantool.{self.name}: {' '.join(text.split())}", err=True)
        return status


def job_command(
    results: Sequence[str], examples: str, *, queue: bool | None = True, metrics: Sequence[str] = ()
) -> Callable[[JobFunction], JobCommand]:
    """Make a command of a function that takes a `Job`, and its own options by name.

    Declare its own options by click decorators below this one. The command has the function's name, and its
    docstring as help.

    Parameters:
        results: The names that it passes to `Job.write`.
        examples: Command lines, one per line.
        queue: Whether `--queue` is required; None if it is optional.
        metrics: The names that it passes to `Job.check`, for `--fail-if`; durations end in `_s`.

    Example:
        @job_command(["tubes"], examples="python -m spark.tubes ./data --queue tubes")
        @click.option("--least", default=1, help="...")
        def tubes(job: Job, least: int) -> None: ...

        if __name__ == "__main__":
            sys.exit(tubes.run())
    """

    def decorate(function: JobFunction) -> JobCommand:
        own = list(reversed(getattr(function, "__click_params__", [])))
        documentation = (function.__doc__ or "").partition("\n")

        command = JobCommand(
            function.__name__,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
            params=[*_options(queue is True), *([_fail_if(metrics)] if metrics else []), *own],
            help=function.__doc__,
            short_help=documentation[0],
            epilog=examples,
        )
        command.callback = _Run(command, function).run
        command.results = results
        command.metrics = metrics
        return command

    return decorate


def _checked(
    option: str, mode: str = "current"
) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Check an option by the data source's parser."""

    def check(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
        if text is not None:
            try:
                ReadOptions.parse({"path": ".", "space": "0", "mode": mode, option: text})
            except SourceError as error:
                reason = str(error).replace(f'the option "{option}" is ', "it is ")
                raise click.BadParameter(reason) from None
        return text

    return check


def _seconds(context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    _checked("time", "at_time")(context, parameter, text)
    if text is None:
        return None
    return ReadOptions.parse({"path": ".", "space": "0", "mode": "at_time", "time": text}).time


def _now(context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    return time.time() if text == "present" else _seconds(context, parameter, text)


NOW: Final = click.option(
    "--now",
    metavar="TIME",
    callback=_now,
    help="Compute ages at this time, or `present`.  [default: --at-time, or the newest change read]",
)
"""The option of jobs that report ages."""


def _options(queue_required: bool) -> list[click.Parameter]:
    """The common options of all jobs."""
    return [
        click.Argument(["paths"], metavar="DIR...", nargs=-1, required=True),
        click.Option(
            ["--queue"],
            type=click.Choice(QUEUES),
            required=queue_required,
            help="The kind of queue in these files.",
        ),
        click.Option(["--wal-dir"], metavar="DIR", help="The directory of the logs, if not DIR."),
        click.Option(
            ["--at-lsn"],
            metavar="LSN",
            callback=_checked("lsn", "at_lsn"),
            help="Read up to this change: a number or, if several members write, a clock: {1: 10, 2: 7}.",
        ),
        click.Option(
            ["--at-time"],
            metavar="TIME",
            callback=_seconds,
            help="Read up to this time: seconds since 1970, or as in 2026-01-31T12:00:00Z.",
        ),
        click.Option(["--output"], metavar="DIR", help="Write each result into the directory DIR/RESULT."),
        click.Option(
            ["--format", "output_format"],
            type=click.Choice(FORMATS),
            default="parquet",
            help="The file format of --output.  [default: parquet]",
        ),
        click.Option(["--report"], metavar="FILE.html", help="Write a page with figures and charts."),
        click.Option(
            ["--follow"],
            metavar="SECONDS",
            type=click.IntRange(1),
            help="Write the page again when changes are logged, at most each SECONDS; until Ctrl-C.",
        ),
        click.Option(["--overwrite"], is_flag=True, help="Replace existing results and an existing report."),
        click.Option(
            ["--master"],
            metavar="URL",
            callback=_master,
            help="The cluster, or local[N].  [default: that of spark-submit, or local[*]]",
        ),
        click.Option(
            ["--conf"],
            metavar="KEY=VALUE",
            multiple=True,
            callback=_settings,
            help="A Spark setting, such as spark.driver.memory=4g. May be repeated.",
        ),
        click.Option(
            ["--damaged"],
            type=click.Choice(["fail", "skip"]),
            default="fail",
            help="At damaged places, fail, or skip and count them.  [default: fail]",
        ),
        click.Option(
            ["--bad-records"],
            metavar="DIR",
            help="Keep reports of damaged places here; on a cluster, a directory shared by all machines.",
        ),
        click.Option(
            ["--partition-bytes"],
            metavar="BYTES",
            callback=_checked("partition_bytes"),
            help="The approximate size of the parts of files that tasks read, such as 64M.  [default: 16M]",
        ),
        click.Option(["--verbose"], is_flag=True, help="Show Spark's messages and the tracebacks of errors."),
    ]


def _fail_if(metrics: Sequence[str]) -> click.Option:
    def parse(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> list[Condition]:
        try:
            return [Condition.parse(text, metrics) for text in texts]
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    names = ", ".join(metric.removesuffix("_s") for metric in metrics)
    return click.Option(
        ["--fail-if"],
        metavar="CONDITION",
        multiple=True,
        callback=parse,
        help=f"Exit with status {STATUS} in the end if this holds: 'oldest_ready > 5m'. May be repeated. "
        f"There are {names}.",
    )


_MASTER: Final = re.compile(r"local|local\[.+\]|local-cluster\[.+\]|yarn|[a-z0-9-]+://.+")


def _master(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Refuse what is no master before Java starts, which takes seconds."""
    if text is not None and _MASTER.fullmatch(text) is None:
        raise click.BadParameter(f"it is {text!r}, not like local[2], yarn, spark://HOST:PORT or k8s://URL")
    return text


def _settings(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.startswith("spark."):
            raise click.BadParameter(f'"{text}" is not like spark.driver.memory=4g')
        settings[name] = value
    return settings


class _Run:
    """Runs a job's function after processing the common options."""

    def __init__(self, command: JobCommand, function: JobFunction) -> None:
        self._command = command
        self._function = function

    def run(self, **given: Any) -> None:
        """Run the job.

        Raises:
            click.ClickException: If it fails, with a one-line message.
        """
        # PySpark 4.3 warns about pandas 3 whenever rows are created; jobs are not affected.
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        if given["at_lsn"] is not None and given["at_time"] is not None:
            raise click.UsageError("--at-lsn and --at-time exclude each other")
        if given["follow"] is not None:
            _check_follow(given)
        verbose = given.pop("verbose")
        try:
            self._run(given, verbose)
        except (SourceError, StorageError) as error:
            raise click.ClickException(str(error)) from None
        except (PySparkException, Py4JError, OSError) as error:
            sentence = sentence_of(error)
            if verbose or sentence is None:
                raise
            raise click.ClickException(sentence) from None

    def _run(self, given: dict[str, Any], verbose: bool) -> None:
        report, overwrite = given.pop("report"), given.pop("overwrite")
        if report is not None:
            _check_report(Path(report), overwrite)
        begun = time.monotonic()
        name = self._command.name or ""
        directory, file_format = given.pop("output"), given.pop("output_format")
        settings = {"spark.log.level": "WARN"} if verbose else {}
        was_there = sessions.is_running()
        session = sessions.start(
            f"pyspark_tarantool.{name}", given.pop("master"), {**settings, **given.pop("conf")}
        )
        try:
            outputs = Outputs(session, directory, file_format, overwrite) if directory else None
            if outputs is not None:
                outputs.refuse_existing(self._command.results)
            queue = given.pop("queue")
            paths, at_lsn, at_time = given.pop("paths"), given.pop("at_lsn"), given.pop("at_time")
            conditions, every = given.pop("fail_if", ()), given.pop("follow")
            with _bad_records(given) as options:

                def work() -> None:
                    job = Job(
                        name=name,
                        session=session,
                        paths=paths,
                        queue=None if queue is None else _queue_kind(queue),
                        options=options,
                        at_lsn=at_lsn,
                        at_time=at_time,
                        outputs=outputs,
                        report_file=report,
                        begun=begun,
                        conditions=conditions,
                        refresh_s=every,
                    )
                    try:
                        job.log_inputs()
                        self._function(job, **given)
                    finally:
                        job.close()

                if every is None:
                    work()
                else:
                    follow(session, options.get("wal_dir") or paths[0], _of_stream(options), every, work)
        finally:
            # A session of a notebook or a test is left running.
            if not was_there:
                session.stop()


def _check_follow(given: Mapping[str, Any]) -> None:
    """Check the options that exclude or need each other."""
    excluded = ("output", "at_lsn", "at_time", "fail_if")
    for name in (each for each in excluded if given.get(each)):
        raise click.UsageError(f"--follow and --{name.replace('_', '-')} exclude each other")
    if given["report"] is None or len(given["paths"]) != 1:
        raise click.UsageError("--follow needs --report, and one directory")


def _of_stream(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a stream that only tells that there are changes."""
    return {name: text for name, text in options.items() if name == "damaged"}


def _queue_kind(name: str) -> QueueKind:
    from pyspark_tarantool.queues import queue_kind

    return queue_kind(name)


def _check_report(file: Path, overwrite: bool) -> None:
    """Check that the report can be written, before the work begins."""
    if file.exists() and not overwrite:
        raise SourceError(f"{file} already exists: choose another --report, or use --overwrite")
    if not file.absolute().parent.is_dir():
        raise SourceError(f"{file}: the directory does not exist")


@contextmanager
def _bad_records(given: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The data source's options for all reads; at the end, report the skipped places."""
    options = {
        name: text
        for name in ("wal_dir", "damaged", "partition_bytes")
        if (text := given.pop(name)) is not None
    }
    kept = given.pop("bad_records")
    if options["damaged"] == "fail":
        yield options
        return
    with tempfile.TemporaryDirectory(prefix="bad-records-") as directory:
        options["bad_records_path"] = kept or directory
        yield options
        skipped = SkippedBlocks.read(options["bad_records_path"])
    for reason in skipped.reasons:
        click.echo(f"skipped: {reason}", err=True)
    places = f"{skipped.places} damaged place{'s' * (skipped.places != 1)}"
    click.echo(f"skipped {places}, {skipped.size} bytes", err=True)
