"""Where a queue is, and who asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from iproto_server.config.address import Address

TUTORIAL: Final = "tutorial"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A queue on a server, for a user.

    Parameters:
        address: the server.
        tube: the name of a tube; None: the tutorial's queue.
        user, password: who logs in; None: nobody, so that the guest's rights count.
    """

    address: Address
    tube: str | None
    user: str | None
    password: str | None

    @classmethod
    def of(
        cls, address: str, dialect: str | None, tube: str | None, user: str | None, password: str | None
    ) -> Self:
        """Check what a caller gives; the parameters are those of `Queue`.

        Raises:
            ValueError: the address is none, not exactly one of `dialect` and `tube` is given, or the dialect
                is unknown.
        """
        if (dialect is None) == (tube is None):
            raise ValueError('give one of the two: the dialect "tutorial", or tube=NAME')
        if dialect not in (None, TUTORIAL):
            raise ValueError(f'unknown dialect {dialect!r}; expected "tutorial", or tube=NAME')
        if tube == "":
            raise ValueError("a tube's name is not empty")
        return cls(Address.parse(address), tube, user, password)

    @property
    def host(self) -> str:
        """The host of an address that is no path."""
        return self.address.host or "127.0.0.1"
