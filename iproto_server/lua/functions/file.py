"""Files and directories for `fio.lua`.

A function returns its result, or None and what the operating system says about the error.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import wraps
from math import isfinite
from typing import Any, Final

BLOCK: Final = 1 << 20

Failure = tuple[None, int, bytes]


def _system_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns None, an error's number and its text, instead of raising an OSError."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except OSError as error:
            return _failure(error.errno or errno.EIO)
        except OverflowError:  # a number beyond those of C
            return _failure(errno.EINVAL)

    return call


def _failure(number: int) -> Failure:
    return None, number, os.strerror(number).encode()


def _checked(descriptor: int) -> int:
    """A descriptor; a negative one, of a closed file, is an error of the operating system."""
    if descriptor < 0:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return descriptor


def file_open(path: bytes, flags: int, mode: int) -> int:
    """Open a file. Returns its descriptor."""
    return os.open(path, flags, mode)


def file_close(descriptor: int) -> bool:
    os.close(_checked(descriptor))
    return True


def file_read(descriptor: int, size: int | None, offset: int) -> bytes:
    """Read bytes.

    Parameters:
        descriptor: the file's descriptor.
        size: their number; None: all up to the end.
        offset: where they are; negative: at the file's position.
    """
    if size is not None:
        return os.pread(descriptor, size, offset) if offset >= 0 else os.read(descriptor, size)
    parts = []
    while part := os.read(descriptor, BLOCK):
        parts.append(part)
    return b"".join(parts)


def file_write(descriptor: int, data: bytes, offset: int) -> bool:
    """Write all bytes at an offset, or at the file's position if it is negative."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, offset) if offset >= 0 else os.write(descriptor, rest)
        rest = rest[written:]
        offset += written if offset >= 0 else 0
    return True


def file_seek(descriptor: int, offset: int, whence: int) -> int:
    return os.lseek(_checked(descriptor), offset, whence)


def file_truncate(file: int | bytes, size: int) -> bool:
    """Truncate or extend the file of a descriptor or a path."""
    if size < 0 and isinstance(file, int):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    if size < 0 and stat.S_ISDIR(os.stat(file).st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    os.truncate(_checked(file) if isinstance(file, int) else file, size)
    return True


def file_sync(descriptor: int, data_alone: bool) -> bool:
    """Write a file's cached data to the disk, and its metadata unless `data_alone`."""
    if data_alone:
        os.fdatasync(_checked(descriptor))
    else:
        os.fsync(_checked(descriptor))
    return True


def file_status(file: int | bytes, follow: bool) -> tuple[float, ...]:
    """What stat says of a descriptor or a path, in the order of `fio.lua`."""
    if isinstance(file, int):
        status = os.fstat(_checked(file))
    else:
        status = os.stat(file, follow_symlinks=follow)
    return (
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_nlink,
        status.st_uid,
        status.st_gid,
        status.st_rdev,
        status.st_size,
        status.st_blksize,
        status.st_blocks,
        status.st_atime_ns // 10**9 + status.st_atime_ns % 10**9 / 1e9,
        status.st_mtime_ns // 10**9 + status.st_mtime_ns % 10**9 / 1e9,
        status.st_ctime_ns // 10**9 + status.st_ctime_ns % 10**9 / 1e9,
    )


def file_link(target: bytes, path: bytes) -> bool:
    os.link(target, path)
    return True


def file_symlink(target: bytes, path: bytes) -> bool:
    os.symlink(target, path)
    return True


def file_readlink(path: bytes) -> bytes:
    return os.readlink(path)


def file_rename(old: bytes, new: bytes) -> bool:
    os.rename(old, new)
    return True


def file_unlink(path: bytes) -> bool:
    os.unlink(path)
    return True


def file_chmod(path: bytes, mode: int) -> bool:
    os.chmod(path, mode & 0o7777)
    return True


def file_chown(path: bytes, user: int, group: int) -> bool:
    os.chown(path, user, group)
    return True


def file_utime(path: bytes, atime: float, mtime: float) -> bool | Failure:
    """Set a file's times; -1 is the present."""
    if not isfinite(atime) or not isfinite(mtime):
        return _failure(errno.EINVAL)
    now = time.time_ns()
    accessed, modified = (now if each == -1 else round(each * 10**9) for each in (atime, mtime))
    os.utime(path, ns=(accessed, modified))
    return True


def file_copy(source: bytes, target: bytes) -> bool:
    """Copy a file's contents and mode."""
    with open(source, "rb") as old:
        mode = os.fstat(old.fileno()).st_mode
        if os.path.exists(target) and os.path.samefile(source, target):
            return True
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, stat.S_IMODE(mode))
        with open(descriptor, "wb") as new:
            shutil.copyfileobj(old, new, BLOCK)
    return True


def user_number(name: bytes) -> int | None:
    """A user's number; None if there is no such user."""
    try:
        return pwd.getpwnam(name.decode("utf-8", "surrogateescape")).pw_uid
    except KeyError:
        return None


def group_number(name: bytes) -> int | None:
    """A group's number; None if there is no such group."""
    try:
        return grp.getgrnam(name.decode("utf-8", "surrogateescape")).gr_gid
    except KeyError:
        return None


def directory_make(path: bytes, mode: int) -> bool:
    os.mkdir(path, mode)
    return True


def directory_remove(path: bytes) -> bool:
    os.rmdir(path)
    return True


def directory_list(path: bytes) -> bytes:
    """Names in a directory, each followed by a NUL."""
    return b"".join(name + b"\0" for name in os.listdir(path))


def directory_temporary() -> bytes:
    """Make a new directory for temporary files. Returns its path."""
    return tempfile.mkdtemp(prefix=b"", dir=os.environb.get(b"TMPDIR") or b"/tmp")


def directory_current() -> bytes:
    return os.getcwdb()


def directory_change(path: bytes) -> bool:
    os.chdir(path)
    return True


def file_umask(mask: int | None) -> int:
    """Set the process's mask of new files' modes unless it is None. Returns the one before."""
    before = os.umask(0 if mask is None else mask)
    if mask is None:
        os.umask(before)
    return before


def file_sync_all() -> bool:
    os.sync()
    return True


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "group_number": group_number,
    "user_number": user_number,
    **{
        function.__name__: _system_call(function)
        for function in (
            directory_change,
            directory_current,
            directory_list,
            directory_make,
            directory_remove,
            directory_temporary,
            file_chmod,
            file_chown,
            file_close,
            file_copy,
            file_link,
            file_open,
            file_read,
            file_readlink,
            file_rename,
            file_seek,
            file_status,
            file_symlink,
            file_sync,
            file_sync_all,
            file_truncate,
            file_umask,
            file_unlink,
            file_utime,
            file_write,
        )
    },
}
