"""The compiled module, where there is one."""

from typing import Any

INTERFACE: int

def take_over(name: str, python: object, /) -> Any: ...
def know(python: type, /) -> None: ...
