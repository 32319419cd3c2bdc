"""Checking every file of a database by itself, and that the logs follow each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from iproto_server.storage.directory import list_files, read_header
from iproto_server.storage.errors import TruncatedFileError, XlogError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Damage, FileType, OnDamage, XlogHeader, XlogReader


class Findings:
    """Findings, reported as they are found.

    Parameters:
        problem: takes one line about what is wrong.
        note: takes one line about what is worth knowing.

    Attributes:
        problems: how many there were.
        snapshots, logs: how many files were read.
    """

    def __init__(self, problem: Callable[[str], None], note: Callable[[str], None]) -> None:
        self.problems = 0
        self.snapshots = 0
        self.logs = 0
        self.note = note
        self._tell = problem

    def problem(self, text: str) -> None:
        """Tell of a problem."""
        self.problems += 1
        self._tell(text)


class FileCheck:
    """Reads all files of a database and verifies what each says about itself.

    Parameters:
        findings: is told what is found.
        in_use: whether a server works with the files, so that old ones may vanish.
    """

    def __init__(self, findings: Findings, *, in_use: bool = False) -> None:
        self._findings = findings
        self._in_use = in_use
        self._instance: tuple[UUID, Path] | None = None

    def check_snapshots(self, directory: Path) -> None:
        """Check all snapshots of a directory.

        Raises:
            OSError: the directory cannot be read.
        """
        for path in list_files(directory, FileType.SNAPSHOT):
            try:
                self._check_snapshot(path)
            except XlogError as error:
                self._findings.problem(str(error))
            except OSError as error:
                self._unreadable(path, error)

    def check_logs(self, directory: Path) -> None:
        """Check all logs of a directory, and that none is missing between them.

        Raises:
            OSError: the directory cannot be read.
        """
        reached: VClock | None = None
        paths = list_files(directory, FileType.LOG)
        for path in paths:
            try:
                reached = self._check_log(path, reached, is_last=path == paths[-1])
            except XlogError as error:
                self._findings.problem(str(error))
                reached = None
            except OSError as error:
                self._unreadable(path, error)
                reached = None

    def _unreadable(self, path: Path, error: OSError) -> None:
        if not (self._in_use and isinstance(error, FileNotFoundError)):
            self._findings.problem(f"cannot read {path}: {error.strerror}")

    def _problem(self, path: Path, offset: int, reason: str) -> None:
        self._findings.problem(str(XlogError(str(path), offset, reason)))

    def _check_instance(self, path: Path, header: XlogHeader) -> None:
        """Check that all files are of one instance."""
        if self._instance is None:
            self._instance = header.instance_uuid, path
        known, where = self._instance
        if header.instance_uuid != known:
            self._problem(path, 0, f"the instance is {header.instance_uuid}, but {known} in {where.name},")

    def _check_snapshot(self, path: Path) -> None:
        header = read_header(path, FileType.SNAPSHOT)
        self._check_instance(path, header)
        with XlogReader.open(path, OnDamage.SKIP) as reader:
            for _ in reader.row_blocks():
                pass
            for damage in reader.damages:
                self._problem(path, damage.start, damage.reason)
            if not reader.closed and not reader.damages:
                self._problem(path, reader.good_end, "the snapshot ends without end marker")
        self._findings.snapshots += 1

    def _check_log(self, path: Path, reached: VClock | None, *, is_last: bool) -> VClock | None:
        """Check a log.

        Parameters:
            path: the log.
            reached: the clock at the end of the log before; None if that is not known.
            is_last: whether no other follows.

        Returns:
            The clock at its end; None if that is not known.
        """
        try:
            header = read_header(path, FileType.LOG)
        except TruncatedFileError as error:
            if not is_last:
                raise
            self._findings.note(f"{error}: it has no rows, and a server that starts does without it")
            return None
        self._check_instance(path, header)
        if reached is not None and not reached.covers(header.vclock):
            reason = f"rows are missing between {reached}, where the log before it ends, and {header.vclock}"
            self._problem(path, 0, reason)
        try:
            contents = _read_log(path, header, OnDamage.CUT_TAIL)
        except XlogError:
            contents = _read_log(path, header, OnDamage.SKIP)
            for damage in contents.damages:
                self._problem(path, damage.start, damage.reason)
        else:
            for damage in contents.damages:
                torn = XlogError(str(path), damage.start, damage.reason)
                outcome = "a server that starts cuts it off" if is_last else "the next log begins there"
                self._findings.note(f"{torn}: a write was interrupted, {outcome}")
        for gap in contents.gaps:
            self._problem(path, gap.start, gap.reason)
        self._findings.logs += 1
        return contents.end


class _Contents(NamedTuple):
    """The contents of a log.

    Attributes:
        end: the clock behind its last row; None if rows may be missing.
        damages: what could not be read.
        gaps: where numbers do not follow each other.
    """

    end: VClock | None
    damages: list[Damage]
    gaps: list[Damage]


def _read_log(path: Path, header: XlogHeader, on_damage: OnDamage) -> _Contents:
    """Read a log. Raises XlogError at damage that the reader is not to live with."""
    clock = header.vclock.copy()
    gaps: list[Damage] = []
    with XlogReader.open(path, on_damage) as reader:
        known_damages = 0
        for offset, rows in reader.batches():
            # What comes behind damage does not follow what is before it, and that is said already.
            follows = len(reader.damages) == known_damages
            known_damages = len(reader.damages)
            for row in rows:
                before = clock.get(row.replica_id, 0)
                if row.lsn != before + 1 and follows:
                    reason = f"LSN {row.lsn} of member {row.replica_id} comes behind {before}"
                    gaps.append(Damage(offset, offset, reason))
                follows = True
                clock[row.replica_id] = row.lsn
        whole = on_damage is OnDamage.CUT_TAIL or not reader.damages
        return _Contents(clock if whole else None, reader.damages, gaps)
