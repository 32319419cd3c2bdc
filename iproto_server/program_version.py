"""The version of this program."""

from __future__ import annotations

DISTRIBUTION = "iproto-server"


def program_version() -> str:
    """Return the version of the installed package; "(not installed)" where there is none."""
    from importlib import metadata

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "(not installed)"
