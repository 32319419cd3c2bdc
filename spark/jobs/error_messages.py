"""One-line error messages, extracted from Spark's Python and Java tracebacks."""

from __future__ import annotations

import re
from typing import Final

from pyspark.errors import AnalysisException

# The last line of a Python trace: the class, with its module, and the message.
_OURS: Final = re.compile(
    r"(?:^|[\s:])(?:pyspark_tarantool|iproto_server)(?:\.\w+)*\.(?:\w+Error): (?P<sentence>[^\n]+)",
    re.MULTILINE,
)
# Errors of Hadoop's filesystems and of Java for files that cannot be read or written.
_FILES: Final = re.compile(
    r"(?:^|[\s:])(?:java\.(?:io|net|nio\.file)|org\.apache\.hadoop(?:\.\w+)*)\.\w+(?:Exception|Error): "
    r"(?P<sentence>[^\n]+)",
    re.MULTILINE,
)
# Python's errors for files and networks, raised by workers.
_SYSTEM: Final = re.compile(
    r"^\s*(?:FileNotFoundError|PermissionError|OSError|ConnectionError|ConnectionRefusedError|TimeoutError): "
    r"(?P<sentence>[^\n]+)",
    re.MULTILINE,
)


def sentence_of(error: BaseException) -> str | None:
    """Extract the message for users from an error that Spark reports.

    Parameters:
        error: The exception on the driver; its text includes that of a worker.

    Returns:
        One sentence of the data source, a filesystem or the system; None for other errors, which need their
        traceback.
    """
    text = str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else text
    if isinstance(error, AnalysisException) and _OURS.search(text) is None:
        # The data lacks something requested, such as a column.
        return re.sub(r"\s*SQLSTATE: \w+\s*$", "", text.partition("\n")[0]).removesuffix(";")
    for pattern in (_OURS, _FILES, _SYSTEM):
        found = pattern.search(text)
        if found is not None:
            return found["sentence"].strip()
    return None
