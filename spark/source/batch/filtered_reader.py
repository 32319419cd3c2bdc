"""The base of readers that evaluate the option `where` while reading."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter

from pyspark_tarantool.source.arrow.condition_text import parse_condition
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.batch.worker import WorkerSetup
from pyspark_tarantool.source.errors import SourceError


class FilteredReader(WorkerSetup, DataSourceReader):
    """A reader that leaves out rows before the rest of them is decoded.

    It does not accept filters from Spark (`pushFilters`): Spark (4.3) stores them with the loaded table and
    uses those of one scan for all others, also within one query, which then have wrong rows.
    """

    _filters: Filters

    @property
    @abstractmethod
    def filter_types(self) -> Mapping[str, pa.DataType]:
        """The columns that filters may use, and their types."""

    def restrict(self, filters: Iterable[Filter]) -> list[Filter]:
        """Leave out rows for which a filter does not hold.

        Parameters:
            filters: The filters.

        Returns:
            Those that cannot be evaluated while reading.
        """
        return list(self._filters.accept(filters, self.filter_types))

    def restrict_to(self, condition: str) -> None:
        """Leave out rows for which a condition does not hold.

        Parameters:
            condition: The option `where`.

        Raises:
            SourceError: If it is malformed, or cannot be evaluated while reading.
        """
        rest = self.restrict(parse_condition(condition, self.filter_types))
        if rest:
            names = ", ".join(sorted({".".join(_attribute(each)) for each in rest}))
            raise SourceError(
                f'the option "where" is {condition!r}: comparisons of {names} cannot be evaluated while '
                "reading: use where(…) of the table"
            )


def _attribute(given: Filter) -> tuple[str, ...]:
    inner = getattr(given, "child", given)
    attribute: tuple[str, ...] = getattr(inner, "attribute", ())
    return attribute
