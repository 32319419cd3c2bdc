"""Paths, directories and globs on any filesystem that pyarrow supports: local, HDFS, S3 and others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from typing import BinaryIO, Final, NamedTuple, cast

from pyarrow import fs

from iproto_server.storage.xlog import FileType
from pyspark_tarantool.source.errors import SourceError

SUFFIXES: Final = tuple(file_type.suffix for file_type in FileType)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_GLOB: Final = re.compile(r"[*?\[]")


class FoundFile(NamedTuple):
    """A file.

    Attributes:
        uri: A path of the local filesystem, or a URI.
        size: Its size in bytes.
    """

    uri: str
    size: int


def locate(uri: str) -> tuple[fs.FileSystem, str]:
    """Find the filesystem of a path.

    Parameters:
        uri: A URI, or a path of the local filesystem, which may be relative.

    Returns:
        The filesystem, and the path in it.

    Raises:
        SourceError: If the filesystem is unknown or unreachable.
    """
    if _SCHEME.match(uri) is None and not uri.startswith("file:"):
        return fs.LocalFileSystem(), uri
    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
    except (OSError, ValueError) as error:
        raise SourceError(f"{uri}: {_first_line(error)}") from None
    return filesystem, path


def find_files(paths: Iterable[str], suffixes: Sequence[str] = SUFFIXES) -> list[FoundFile]:
    """Find the files that paths name.

    Parameters:
        paths: Files with any name; directories, of which the files with one of the suffixes are read, without
            subdirectories; and globs (`*`, `?`, `[…]`) of either.
        suffixes: The suffixes of files to read in directories.

    Returns:
        The files, each once, in the order of the paths and of their names.

    Raises:
        SourceError: If a path does not exist or cannot be read.
    """
    found: dict[str, FoundFile] = {}
    for given in paths:
        filesystem, path = locate(given)
        prefix = given[: len(given) - len(path)] if given.endswith(path) else None
        try:
            matching = [path] if _GLOB.search(path) is None else list(_matching(filesystem, path))
            infos = filesystem.get_file_info(matching)
            files: list[fs.FileInfo] = []
            for info in infos:
                if info.type == fs.FileType.Directory:
                    inside = filesystem.get_file_info(fs.FileSelector(info.path))
                    files += sorted(
                        (each for each in inside if each.is_file and each.path.endswith(tuple(suffixes))),
                        key=lambda each: each.path,
                    )
                elif info.is_file:
                    files.append(info)
                else:
                    raise SourceError(f"{given}: there is no such file or directory")
        except OSError as error:
            raise SourceError(f"{given}: {_first_line(error)}") from None
        if not infos:
            raise SourceError(f"{given}: no file or directory matches")
        for info in files:
            uri = info.path if prefix is None else prefix + info.path
            found.setdefault(uri, FoundFile(uri, info.size))
    return list(found.values())


def open_file(uri: str) -> BinaryIO:
    """Open a file for reading.

    Parameters:
        uri: As in `FoundFile`.

    Returns:
        The file, seekable and unbuffered.

    Raises:
        OSError: If it cannot be opened.
    """
    filesystem, path = locate(uri)
    if isinstance(filesystem, fs.LocalFileSystem):
        return open(path, "rb", buffering=0)
    return cast("BinaryIO", filesystem.open_input_file(path))


def _matching(filesystem: fs.FileSystem, pattern: str) -> Iterable[str]:
    """The paths that a glob matches; a star does not cross a slash."""
    parts = pattern.split("/")
    fixed = next(index for index, part in enumerate(parts) if _GLOB.search(part))
    paths = ["/".join(parts[:fixed])]
    for part in parts[fixed:]:
        matches = re.compile(translate(part)).match
        entries = [
            info
            for path in paths
            for info in filesystem.get_file_info(
                fs.FileSelector(path or ("/" if pattern.startswith("/") else "."), allow_not_found=True)
            )
        ]
        paths = sorted(info.path for info in entries if matches(info.base_name))
    return paths


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
