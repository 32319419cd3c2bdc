"""Users and groups of the system, for `pwd.lua`."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Callable, Mapping
from typing import Any, Final

User = tuple[int, bytes, bytes, bytes, int]


def user_find(key: bytes | float) -> User | None:
    """Find a user.

    Parameters:
        key: a name or a number.

    Returns:
        The number, name, home directory, shell and number of the group; None if there is none.
    """
    try:
        found = pwd.getpwnam(os.fsdecode(key)) if isinstance(key, bytes) else pwd.getpwuid(int(key))
    except (KeyError, ValueError, OverflowError):
        return None
    name, home, shell = map(os.fsencode, (found.pw_name, found.pw_dir, found.pw_shell))
    return found.pw_uid, name, home, shell, found.pw_gid


def group_find(key: bytes | float) -> tuple[int | bytes, ...] | None:
    """Find a group.

    Parameters:
        key: a name or a number.

    Returns:
        The number, the name and the names of the members; None if there is none.
    """
    try:
        found = grp.getgrnam(os.fsdecode(key)) if isinstance(key, bytes) else grp.getgrgid(int(key))
    except (KeyError, ValueError, OverflowError):
        return None
    return found.gr_gid, os.fsencode(found.gr_name), *map(os.fsencode, found.gr_mem)


def user_effective() -> int:
    """The number of the user that this process acts for."""
    return os.geteuid()


def group_effective() -> int:
    """The number of the group that this process acts for."""
    return os.getegid()


def user_names() -> tuple[bytes, ...]:
    """The names of all users."""
    return tuple(os.fsencode(user.pw_name) for user in pwd.getpwall())


def group_names() -> tuple[bytes, ...]:
    """The names of all groups."""
    return tuple(os.fsencode(group.gr_name) for group in grp.getgrall())


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "group_effective": group_effective,
    "group_find": group_find,
    "group_names": group_names,
    "user_effective": user_effective,
    "user_find": user_find,
    "user_names": user_names,
}
