"""Whether a Python was built with profile-guided optimization (PGO), which makes it faster.

    python bench/lib/python_build.py

exits with status 0 if this Python was. It imports nothing from this project.
"""

from __future__ import annotations

import platform
import sys
import sysconfig
from collections.abc import Mapping
from typing import Final

_OPTION: Final = "--enable-optimizations"
_PACKAGED: Final = "/usr"


def is_pgo(options: str, prefix: str, system: Mapping[str, str]) -> bool:
    """Whether a Python was built with PGO.

    Debian and Ubuntu build theirs with `make profile-opt` (debian/rules of their packages), which leaves no
    trace in the options.

    Parameters:
        options: the options of its `configure`.
        prefix: the directory into which it was installed.
        system: the fields of os-release(5).
    """
    family = {system.get("ID"), *system.get("ID_LIKE", "").split()}
    return _OPTION in options or (prefix == _PACKAGED and "debian" in family)


def this_is_pgo() -> bool:
    """Whether this Python was built with PGO."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    return is_pgo(sysconfig.get_config_var("CONFIG_ARGS") or "", sys.base_prefix, system)


if __name__ == "__main__":
    sys.exit(not this_is_pgo())
