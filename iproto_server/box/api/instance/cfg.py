"""`box.cfg`: the options in effect; some can change while the server runs.

Source: Tarantool reference, "Submodule box.cfg".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from iproto_server.errors import BoxError, ErrorCode


class Configuration(Mapping[str, Any]):
    """The options by name, as in `box.cfg`: `box.cfg["net_msg_max"]`, `box.cfg.net_msg_max`.

    A call changes options, all or none: `box.cfg(net_msg_max=1000)`.

    Parameters:
        values: returns the options.
        change: changes options; raises BoxError for those that cannot be changed.
    """

    def __init__(
        self, values: Callable[[], Mapping[str, Any]], change: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self.values_of = values
        self.change = change

    def __call__(self, options: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Change options.

        Parameters:
            options: values by name.
            more: the same as keyword arguments.

        Raises:
            BoxError: CFG (59) for an unknown option or an invalid value; RELOAD_CFG (58) for an option that
                cannot change while the server runs.
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
    """The error for an invalid value or an unknown option."""
    return BoxError(ErrorCode.CFG, name, reason)


def boolean(name: str, value: object) -> bool:
    """Check the value of a Boolean option. Raises BoxError CFG."""
    if not isinstance(value, bool):
        raise wrong_value(name, "should be of type boolean")
    return value
