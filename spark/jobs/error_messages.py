"""What went wrong, in one sentence, though Spark wraps it in the traces of two languages."""

from __future__ import annotations

import re
from typing import Final

from pyspark.errors import AnalysisException

# The last line of a Python trace: the class, with its module, and the message.
_OURS: Final = re.compile(
    r"(?:^|[\s:])(?:spark|iproto_server)(?:\.\w+)*\.(?:\w+Error): (?P<sentence>[^\n]+)", re.MULTILINE
)
# What Hadoop's filesystems and Java say of files that cannot be read or written.
_FILES: Final = re.compile(
    r"(?:^|[\s:])(?:java\.(?:io|net|nio\.file)|org\.apache\.hadoop(?:\.\w+)*)\.\w+(?:Exception|Error): "
    r"(?P<sentence>[^\n]+)",
    re.MULTILINE,
)
# Python's own errors about files and networks, raised where a worker reads or writes.
_SYSTEM: Final = re.compile(
    r"^\s*(?:FileNotFoundError|PermissionError|OSError|ConnectionError|ConnectionRefusedError|TimeoutError): "
    r"(?P<sentence>[^\n]+)",
    re.MULTILINE,
)


def sentence_of(error: BaseException) -> str | None:
    """Find what a user can do something about in an error that Spark reports.

    Parameters:
        error: What was raised on the driver; what a worker raised is in its text.

    Returns:
        One sentence: of the data source, a filesystem or the system; None if the error is none of these, but
        a mistake in a program, whose trace is needed.
    """
    text = str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else text
    if isinstance(error, AnalysisException) and _OURS.search(text) is None:
        # What the data does not have, as a column that was asked for.
        return re.sub(r"\s*SQLSTATE: \w+\s*$", "", text.partition("\n")[0]).removesuffix(";")
    for pattern in (_OURS, _FILES, _SYSTEM):
        found = pattern.search(text)
        if found is not None:
            return found["sentence"].strip()
    return None
