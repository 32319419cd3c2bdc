"""Showing logs and snapshots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import OnDamage, Row, XlogReader
from iproto_server.tools.selection import Selection, selected_rows


def show_files(
    paths: Sequence[Path],
    selection: Selection,
    show: Callable[[Row], str],
    output: BinaryIO,
    complain: Callable[[str], None],
    *,
    end: str = "",
) -> bool:
    """Show the rows of files. What is damaged is passed over and complained about.

    Rows are written as they are read; a file may be as large as it likes, and may be growing.

    Parameters:
        paths: the files, logs or snapshots.
        selection: which rows.
        show: makes a row's text.
        output: where to write it, in UTF-8.
        complain: takes one line about each thing that is wrong.
        end: is written after the rows of a file that had any.

    Returns:
        Whether everything was intact.

    Raises:
        OSError: the output cannot be written.
    """
    intact = True

    def say(text: str) -> None:
        nonlocal intact
        intact = False
        complain(text)

    for path in paths:
        try:
            reader = XlogReader.open(path, OnDamage.SKIP)
        except XlogError as error:
            say(str(error))
            continue
        except OSError as error:
            say(f"cannot read {path}: {error.strerror}")
            continue
        with reader:
            any_shown = False
            blocks = selected_rows(reader, selection)
            while True:
                try:
                    rows = next(blocks, None)
                except (XlogError, OSError) as error:
                    say(
                        str(error)
                        if isinstance(error, XlogError)
                        else f"cannot read {path}: {error.strerror}"
                    )
                    break
                if rows is None:
                    break
                if rows:
                    any_shown = True
                    output.write("".join(map(show, rows)).encode("utf-8"))
                    output.flush()
            if any_shown:
                output.write(end.encode())
            output.flush()
            for damage in reader.damages:
                say(str(XlogError(reader.name, damage.start, damage.reason)))
    for name in selection.unknown_names:
        say(f'no space is called "{name}" in these files')
    return intact
