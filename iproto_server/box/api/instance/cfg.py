"""`box.cfg`: the options that are in force, and changing those that can change while the server runs.

Source: Tarantool reference, "Submodule box.cfg".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from iproto_server.errors import BoxError, ErrorCode


class Configuration(Mapping[str, Any]):
    """The options by name, as in `box.cfg`: `box.cfg["net_msg_max"]`, `box.cfg.net_msg_max`.

    Called with options it changes them, all or none: `box.cfg(net_msg_max=1000)`.

    Parameters:
        values: answers the options.
        change: changes some; raises BoxError for what cannot be changed.
    """

    def __init__(
        self, values: Callable[[], Mapping[str, Any]], change: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self.values_of = values
        self.change = change

    def __call__(self, options: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Change options.

        Parameters:
            options: by their names;
            more: others, or these.

        Raises:
            BoxError: CFG (59), there is no such option, or it cannot have the value; RELOAD_CFG (58), it
                cannot be changed while the server runs.
        """
        self.change({**(options or {}), **more})

    def __getitem__(self, name: str) -> Any:
        return self.values_of()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_of())

    def __len__(self) -> int:
        return len(self.values_of())

    def __getattr__(self, name: str) -> Any:
        values = self.values_of()
        if name in values:
            return values[name]
        raise AttributeError(f"box.cfg has no option {name!r}")

    def __repr__(self) -> str:
        return f"box.cfg({dict(self)!r})"


def wrong_value(name: str, reason: str) -> BoxError:
    """The error for a value that an option cannot have, or an option that there is not."""
    return BoxError(ErrorCode.CFG, name, reason)


def boolean(name: str, value: object) -> bool:
    """An option's value that has to be true or false. Raises BoxError CFG."""
    if not isinstance(value, bool):
        raise wrong_value(name, "should be of type boolean")
    return value
