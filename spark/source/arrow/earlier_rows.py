"""The rows of logs that belong to dropped spaces with the ids of later ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.schema.incarnations import Incarnation


def up_to(rows: LogRows, clock: Mapping[int, int]) -> npt.NDArray[np.bool_]:
    """A mask of the rows that a clock covers.

    Parameters:
        rows: Rows of a log.
        clock: The LSN of each member.
    """
    mask = np.zeros(len(rows), np.bool_)
    for member, lsn in clock.items():
        mask |= (rows.replica_id == member) & (rows.lsn <= lsn)
    return mask


def rows_of_each(
    rows: LogRows, incarnations: Sequence[Incarnation]
) -> list[tuple[Incarnation, npt.NDArray[np.bool_]]]:
    """The earlier spaces, and masks of their rows.

    Parameters:
        rows: Rows of a log.
        incarnations: The earlier spaces, in the order of their drops.
    """
    found = []
    rest = np.ones(len(rows), np.bool_)
    for each in incarnations:
        mask = (rows.space_id == each.space_id) & up_to(rows, each.until) & rest
        rest &= ~mask
        found.append((each, mask))
    return found
