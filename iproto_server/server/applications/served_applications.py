"""The applications that a server serves; a reload replaces them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from iproto_server.app import Application, Procedures
from iproto_server.box import Box
from iproto_server.errors import BoxError
from iproto_server.server.application_errors import procedure_error
from iproto_server.server.requests.call import Calls
from iproto_server.server.stats.counters import ApplicationMetrics

logger = logging.getLogger("iproto_server.server")


class ServedApplications:
    """The served applications and their procedures.

    Parameters:
        applications: the applications at the start.

    Attributes:
        current: the served applications.
        procedures: their procedures.
        metrics: their counters; set by `begin`.

    Raises:
        ApplicationConflict: two applications define one procedure.
    """

    metrics: ApplicationMetrics

    def __init__(self, applications: Sequence[Application]) -> None:
        self.current = list(applications)
        self.procedures = Procedures(applications)

    def begin(self, box: Box, calls: Calls) -> None:
        """Begin to serve.

        Parameters:
            box: the database.
            calls: calls their procedures.
        """
        self._box = box
        self._calls = calls
        self.metrics = ApplicationMetrics(box, self.current)

    def replace(self, applications: Sequence[Application], procedures: Procedures) -> None:
        """Serve other applications from now on.

        Parameters:
            applications: the applications.
            procedures: their procedures.
        """
        self.current = list(applications)
        self.procedures = procedures
        self._calls.serve(procedures)
        self.metrics = ApplicationMetrics(self._box, self.current)

    def run_setups(self) -> None:
        """Run the setup functions. Raises BoxError if one raises."""
        for application in self.current:
            for setup in application.setups:
                try:
                    self._box.run(self._box.session.background, setup, self._box)
                except BoxError:
                    raise
                except BaseException as error:
                    raise procedure_error(f"the setup of {application.name}", error) from error

    def run_stops(self) -> None:
        """Run the on_stop functions. An error is logged and does not stop the others."""
        for application in self.current:
            for function in application.stops:
                try:
                    self._box.run(self._box.session.background, function, self._box)
                except BaseException:
                    # The other functions, and the rest of the stop, have to run in any case.
                    logger.exception("an on_stop function of %s failed", application.name)
