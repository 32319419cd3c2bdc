"""The compiled module, where there is one."""

from typing import Any

INTERFACE: int
FINGERPRINT: str

def take_over(name: str, python: object, /) -> Any: ...
def take_over_method(owner: type, name: str, /) -> Any: ...
