"""Compares the answers of two servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tests.differential.random.answer import Inspection, Reply
from tests.differential.random.deliberate import reason_for
from tests.differential.random.request import Request
from tests.iproto_client import PING


@dataclass(frozen=True, slots=True)
class Difference:
    """A request with different answers.

    Parameters:
        case: The requests, this one last.
        ours: Our answers.
        theirs: The real Tarantool's.
    """

    case: Sequence[Request]
    ours: Sequence[Reply]
    theirs: Sequence[Reply]

    @property
    def signature(self) -> tuple[object, ...]:
        """Identifies the kind of difference."""
        request = self.case[-1]
        return request.kind, request.space_id, self.ours[-1].code, self.theirs[-1].code

    def __str__(self) -> str:
        lines = []
        for number, (request, ours) in enumerate(zip(self.case[:-1], self.ours, strict=False), start=1):
            lines.append(f"{number:3}. {request}")
            lines.append(f"     both: {str(ours)[:150]}")
        request = self.case[-1]
        lines += [
            f"{len(self.case):3}. {request}",
            f"     bytes:  {request.packed(len(self.case)).hex()}",
            f"     ours:   {self.ours[-1]}",
            f"     theirs: {self.theirs[-1]}",
        ]
        return "\n".join(lines)


@dataclass(slots=True)
class Comparison:
    """The counters of a campaign.

    Attributes:
        compared: The number of pairs of answers.
        refused: The number of pairs of errors.
        deliberate: The numbers of deliberate differences, by reason.
    """

    compared: int = 0
    refused: int = 0
    deliberate: Counter[str] = field(default_factory=Counter)

    def compare(
        self, case: Sequence[Request], ours: Sequence[Reply], theirs: Sequence[Reply]
    ) -> Difference | None:
        """Find the first difference in the answers to a case.

        Parameters:
            case: The requests.
            ours: Our answers, as `Servers.ask` returns them.
            theirs: The real Tarantool's.

        Returns:
            The difference; None if there is none.
        """
        asked = _with_pings(case)
        for number, (request, mine, other) in enumerate(zip(asked, ours, theirs, strict=False)):
            self.compared += 1
            self.refused += other.status != 0
            if mine.outcome(request) == other.outcome(request):
                continue
            reason = reason_for(request, mine, other)
            if reason is None:
                return Difference(asked[: number + 1], ours[: number + 1], theirs[: number + 1])
            self.deliberate[reason] += 1
            if (mine.status == 0) is not (other.status == 0):
                return None
        if len(ours) != len(theirs):
            last = min(len(ours), len(theirs))
            return Difference(asked[:last], ours[:last], theirs[:last])
        return None

    @staticmethod
    def inspect(
        case: Sequence[Request],
        ours: Sequence[Reply],
        theirs: Sequence[Reply],
        request: Request,
        inspection: Inspection,
    ) -> Difference:
        """Report a fault of our server after a case as a difference.

        Parameters:
            case, ours, theirs: As for `compare`.
            request: The request that found it.
            inspection: The fault.
        """
        asked = [*_with_pings(case), request]
        return Difference(asked, [*ours, inspection], [*theirs, Inspection()])


def _with_pings(case: Sequence[Request]) -> list[Request]:
    """The case with the PING that ends each user's requests."""
    asked = []
    for user, group in groupby(case, key=lambda request: request.user):
        asked += [*group, Request(PING, user=user)]
    return asked
