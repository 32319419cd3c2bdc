"""Runs one server on one directory again and again, and checks what is left after each kill."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic, sleep

from iproto_server.testing.logged_process import LoggedProcess
from tests.crash.checks.audit import Audit
from tests.crash.checks.checker import Books
from tests.crash.checks.data_files import FileChecks
from tests.crash.checks.finding import Finding, Kind
from tests.crash.checks.torn_write import tear
from tests.crash.life import live
from tests.crash.moment import EVENTS, SNAPSHOT_EVENTS, Event, Moment, Pace, draw_settings
from tests.crash.scale import LONG, Scale
from tests.crash.servers.subject import Server, Settings, Subject

LIVES_OF_A_DATABASE = 15
"""The number of runs before a new, empty directory is used."""

SNAPSHOT_BEGINS = "saving snapshot"
"""A part of every log line about a snapshot."""

TORN = 0.1
"""The share of the lives after whose end a torn write is added."""

LINES_SHOWN = 15
"""The number of lines shown of the output of a server in trouble."""


@dataclass(slots=True)
class Report:
    """The result of a campaign.

    Attributes:
        seed: The seed of all random choices.
        kills: The numbers of kills and stops, by event.
        torn: The number of kills after which a torn write was added.
        acknowledged: The numbers of successful requests, by kind.
        refused: The numbers of requests that were refused as expected.
        unknown: The numbers of requests whose outcome is unknown.
        transactions: The numbers of stream transactions, by their end.
        snapshots: The number of snapshots begun.
        half_snapshots: The number of snapshots left incomplete by a kill.
        lives: The number of runs with load.
        findings: The problems found; a campaign ends with the first run that has findings.
        kept: The files of that run as the kill left them.
        seconds: The time that the campaign has taken.
    """

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    torn: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    unknown: int = 0
    transactions: Counter[str] = field(default_factory=Counter)
    snapshots: int = 0
    half_snapshots: int = 0
    lives: int = 0
    findings: list[Finding] = field(default_factory=list)
    kept: Path | None = None
    seconds: float = 0.0

    @property
    def killed(self) -> int:
        """Return the number of kills."""
        return self.kills.total() - self.kills[Event.STOP]

    @property
    def progress(self) -> str:
        """Describe the course of the campaign in one line."""
        per_minute = 60 * self.lives / self.seconds if self.seconds else 0
        return (
            f"{self.lives} lives, {self.killed} kills, {self.acknowledged.total()} acknowledged, "
            f"{len(self.findings)} findings; {self.seconds:.0f} s, {per_minute:.0f} lives per minute"
        )

    def __str__(self) -> str:
        kills = ", ".join(f"{count} × {when}" for when, count in sorted(self.kills.items()))
        done = ", ".join(f"{count} {kind}" for kind, count in sorted(self.acknowledged.items()))
        ends = ", ".join(f"{count} {end}" for end, count in sorted(self.transactions.items()))
        lines = [
            f"seed {self.seed}: {self.progress}",
            f"ended: {kills or 'never'}",
            f"{self.snapshots} snapshots, {self.half_snapshots} of them half written when it was killed; "
            f"{self.torn} torn writes",
            f"{self.acknowledged.total()} acknowledged ({done})",
            f"{self.refused} refused as they had to be, {self.unknown} unknown",
            f"transactions in streams: {ends or 'none'}",
            *(f"FOUND {finding}" for finding in self.findings),
        ]
        if self.findings:
            lines.append(f"the files are in {self.kept}")
        return "\n".join(lines)


class Campaign:
    """Kills a server repeatedly.

    Parameters:
        subject: The server.
        directory: An empty directory for its databases.
        seed: The seed of all random choices.
        tell: Called with a line about every run.
        events: What the lives end with, one after the other. Without one that is about snapshots, there are
            none while there is load.
        scale: How long runs are, and how large databases.
    """

    def __init__(
        self,
        subject: Subject,
        directory: Path,
        seed: int,
        tell: Callable[[str], None] = lambda line: None,
        *,
        events: Sequence[Event] = EVENTS,
        scale: Scale = LONG,
    ) -> None:
        self._subject = subject
        self._base = directory
        self._tell = tell
        self._events = events
        self._with_snapshots = not SNAPSHOT_EVENTS.isdisjoint(events)
        self.report = Report(seed)
        self._books = Books()
        self._files = FileChecks()
        self._directory = directory
        self._scale = scale
        self._pace = Pace(scale)
        self._databases = 0

    def run(self, *, seconds: float = 0, lives: int = 0, kills: int = 0) -> Report:
        """Run until the time and the numbers of runs and kills are reached, or until something is found."""
        begin = monotonic()
        while not self.report.findings and (
            monotonic() < begin + seconds or self.report.lives < lives or self.report.killed < kills
        ):
            self._live(Random(f"{self.report.seed}/{self.report.lives}"))
            self.report.lives += 1
            self.report.seconds = monotonic() - begin
        self._last_look()
        return self.report

    def _live(self, chance: Random) -> None:
        """Run the server once under load, including the start before it."""
        event = self._events[self.report.lives % len(self._events)]
        scale = self._scale.of_run(chance)
        moment = Moment.draw(chance, event, with_snapshots=self._with_snapshots, scale=scale)
        settings = draw_settings(chance, event, with_snapshots=self._with_snapshots, scale=scale)
        if self.report.lives % LIVES_OF_A_DATABASE == 0:
            self._last_look()
            if self.report.findings:
                return
            self._new_database(chance)
            times = chance.randrange(4) if self._subject.survives_bootstrap else 0
            self._kill_early(chance, settings, "bootstrap", times)
        elif chance.random() < 0.4:
            self._kill_early(chance, settings, "recovery", chance.randrange(1, 4))
        server = self._start(settings)
        if server is None:
            return
        try:
            meter = asyncio.run(live(server, self._books, moment, self._pace, chance))
        except (OSError, EOFError) as error:
            self._find(Kind.SERVER, f"it serves nobody: {error}")
            return
        finally:
            self._end(server.process, moment)
        report = self.report
        report.kills[event] += 1
        report.snapshots += server.process.output.count(SNAPSHOT_BEGINS)
        report.acknowledged += meter.acknowledged
        report.refused += meter.refused
        report.unknown += meter.unknown
        report.transactions += meter.transactions
        report.findings += meter.findings
        if self._subject.cuts_torn_writes and chance.random() < TORN:
            report.torn += tear(self._directory, chance)
        self._look_at_remains(server.process, chance)
        self._tell(
            f"life {report.lives}: {settings}; start {self._pace.start:.2f} s; {event}"
            f" after {meter.acknowledged.total()} acknowledged, {meter.unknown} unknown"
        )

    def _last_look(self) -> None:
        """Start once more to check the result of the last run."""
        if self._databases and not self.report.findings and (server := self._start(Settings())):
            server.process.kill()

    # -- a server --

    def _start(self, settings: Settings) -> Server | None:
        """Start the server and compare its contents with the expected state.

        Returns:
            The server; None if there is a finding.
        """
        launched = monotonic()
        process = self._subject.launch(self._directory, settings)
        try:
            process.wait_for(self._subject.begins)
            begun = monotonic()
            ready = process.wait_for(self._subject.ready)
            self._pace.started(monotonic() - launched, monotonic() - begun)
            audit = Audit.of(ready[1], int(ready[2]))
        except (AssertionError, OSError) as error:
            process.kill()
            self._find(Kind.SERVER, f"it does not start: {_end_of(str(error))}")
            return None
        self.report.findings += self._books.check(audit)
        if self.report.findings:
            self.report.kept = self._as_killed
            process.kill()
            return None
        return Server(self._subject, process, ready[1], int(ready[2]), self._directory, settings)

    def _kill_early(self, chance: Random, settings: Settings, when: str, times: int) -> None:
        """Start the server and kill it before, or just when, it is ready."""
        for _ in range(times):
            process = self._subject.launch(self._directory, settings)
            try:
                if chance.random() < 0.8:
                    process.wait_for(self._subject.begins)
                    sleep(chance.uniform(0, 1.1) * self._pace.recovery)
                else:
                    sleep(chance.uniform(0, 1.1) * self._pace.start)
            except AssertionError as error:
                self._find(Kind.SERVER, f"it does not start: {_end_of(str(error))}")
            finally:
                process.kill()
            output = process.output
            has_begun = re.search(self._subject.begins, output)
            is_through = re.search(self._subject.ready, output)
            self.report.kills[when if has_begun and not is_through else f"before or after {when}"] += 1
            self._look_at_remains(process, chance)

    def _end(self, process: LoggedProcess, moment: Moment) -> None:
        """Wait for the end of the process."""
        if moment.event is not Event.STOP:
            process.kill()
            expected = -signal.SIGKILL
        else:
            expected = 0
        try:
            status = process.wait()
        except subprocess.TimeoutExpired:
            process.kill()
            self._find(Kind.SERVER, "it was asked to stop and did not")
            return
        if status != expected:
            self._find(Kind.SERVER, f"it ended with {status}, not {expected}")

    # -- files --

    @property
    def _as_killed(self) -> Path:
        """Copy the files as the last kill left them: the next start changes them."""
        return self._directory.with_name(f"{self._directory.name}-as-killed")

    def _new_database(self, chance: Random) -> None:
        shutil.rmtree(self._as_killed, ignore_errors=True)
        if self._databases:
            shutil.rmtree(self._directory)
        self._databases += 1
        self._directory = self._base / f"database-{self._databases}"
        self._directory.mkdir()
        self._books = Books(chance.choice(self._scale.ballast))
        self._files = FileChecks()

    def _look_at_remains(self, process: LoggedProcess, chance: Random) -> None:
        """Check the files, and the server's log for internal errors."""
        lines = [line for line in process.output.splitlines() if re.search(self._subject.trouble, line)]
        if lines:
            self._find(Kind.SERVER, f"it complains: {lines[0]}; {_end_of(process.output)}")
        shutil.rmtree(self._as_killed, ignore_errors=True)
        shutil.copytree(self._directory, self._as_killed)
        self.report.half_snapshots += any(self._as_killed.glob("*.snap.inprogress"))
        if self._subject.writes_whole_rows:
            self.report.findings += self._files.check(self._as_killed)
        has_database = any(self._as_killed.glob("*.snap"))
        if (
            has_database
            and chance.random() < self._scale.verified
            and (text := self._subject.verify(self._as_killed))
        ):
            self._find(Kind.FILES, _end_of(text))
        if self.report.findings:
            self.report.kept = self._as_killed

    def _find(self, kind: Kind, text: str) -> None:
        self.report.findings.append(Finding(kind, text))
        self.report.kept = self._as_killed


def _end_of(output: str) -> str:
    """Join the last lines."""
    return " | ".join(output.splitlines()[-LINES_SHOWN:])
