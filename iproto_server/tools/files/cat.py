"""Showing logs and snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from iproto_server.errors import BoxError
from iproto_server.storage.directory import list_files, signature_of
from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import FileType, OnDamage, Row, XlogReader
from iproto_server.tools.files.selection import Selection, selected_rows


class FileShow:
    """Shows the rows of files. What is damaged is passed over and complained about.

    Rows are written as they are read; a file may be as large as it likes, and may be growing.

    Parameters:
        selection: which rows.
        show: makes a row's text.
        output: where to write it, in UTF-8.
        complain: takes one line about each thing that is wrong.

    Attributes:
        intact: whether nothing was wrong so far.
    """

    def __init__(
        self,
        selection: Selection,
        show: Callable[[Row], str],
        output: BinaryIO,
        complain: Callable[[str], None],
    ) -> None:
        self.intact = True
        self._selection = selection
        self._show = show
        self._output = output
        self._tell = complain

    def show_all(self, path: Path, end: str = "") -> None:
        """Show the rows of a file, or of all logs and snapshots in a directory.

        Parameters:
            path: the file or directory.
            end: is written after the rows of each file, if there are any.

        Raises:
            OSError: the output cannot be written.
        """
        if not path.is_dir():
            self.show(path, end)
            return
        try:
            files = [file for kind in (FileType.SNAPSHOT, FileType.LOG) for file in list_files(path, kind)]
        except OSError as error:
            self._complain(f"cannot read {path}: {error.strerror}")
            return
        if not files:
            self._complain(f"{path}: there are no logs or snapshots in this directory")
        # The sort is stable: a snapshot comes before the log that follows it.
        for file in sorted(files, key=signature_of):
            self.show(file, end)

    def show(self, path: Path, end: str = "") -> None:
        """Show the rows of a file.

        Parameters:
            path: the file, log or snapshot.
            end: is written after the rows, if there are any.

        Raises:
            OSError: the output cannot be written.
        """
        any_shown = False
        for rows in self._blocks(path):
            if rows:
                any_shown = True
                self._output.write("".join([self._text(path, row) for row in rows]).encode("utf-8"))
                self._output.flush()
        if any_shown:
            self._output.write(end.encode())
        self._output.flush()

    def finish(self) -> None:
        """Complain about what no file had."""
        for name in self._selection.unknown_names:
            self._complain(f'no space is called "{name}" in these files: try its id')

    def _blocks(self, path: Path) -> Iterator[list[Row]]:
        """The rows of a file that are wanted, as far as it can be read."""
        try:
            with XlogReader.open(path, OnDamage.SKIP) as reader:
                yield from selected_rows(reader, self._selection)
                for damage in reader.damages:
                    self._complain(str(XlogError(reader.name, damage.start, damage.reason)))
        except XlogError as error:
            self._complain(str(error))
        except OSError as error:
            self._complain(f"cannot read {path}: {error.strerror}")

    def _text(self, path: Path, row: Row) -> str:
        try:
            return self._show(row)
        except (RecursionError, BoxError):
            self._complain(f"{path}: the row with LSN {row.lsn} is nested too deep to be shown")
            return ""

    def _complain(self, text: str) -> None:
        self.intact = False
        self._tell(text)
