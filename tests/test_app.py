"""What an application registers, and what is refused when it does rather than when a client calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from iproto_server import Application, Box
from iproto_server.app import ApplicationConflict, Procedures


@pytest.fixture
def app() -> Application:
    return Application("jobs")


def plain(box: Box) -> None:
    """A plain function."""


async def waits(box: Box) -> None:
    """A coroutine function."""


class TestProcedures:
    def test_a_function_is_registered_under_its_name_and_stays_as_it_is(self, app: Application) -> None:
        assert app.procedure("jobs.plain")(plain) is plain
        assert app.procedure("jobs.waits")(waits) is waits
        assert {name: procedure.is_async for name, procedure in app.procedures.items()} == {
            "jobs.plain": False,
            "jobs.waits": True,
        }

    def test_methods_and_partial_functions_are_functions(self, app: Application) -> None:
        class Jobs:
            async def slow(self, box: Box) -> None:
                """A method."""

        app.procedure("method")(Jobs().slow)
        app.procedure("partial")(partial(waits))
        assert app.procedures["method"].is_async
        assert app.procedures["partial"].is_async

    @pytest.mark.parametrize(
        "name", ["", "box", "box.info", "box.space.jobs:insert", "package.reload", "operator", "operator.x"]
    )
    def test_names_of_the_server_are_refused(self, app: Application, name: str) -> None:
        with pytest.raises(ValueError, match="cannot be named"):
            app.procedure(name)(plain)

    def test_a_name_that_only_begins_like_one_is_not(self, app: Application) -> None:
        app.procedure("boxes.add")(plain)
        app.procedure("operators")(plain)
        assert app.procedures.keys() == {"boxes.add", "operators"}

    def test_a_name_is_defined_once(self, app: Application) -> None:
        app.procedure("jobs.add")(plain)
        with pytest.raises(ValueError, match=r"'jobs\.add' is defined twice in 'jobs'"):
            app.procedure("jobs.add")(waits)

    def test_the_decorator_needs_its_name(self, app: Application) -> None:
        with pytest.raises(TypeError, match=r'@app\.procedure\("…"\)'):
            app.procedure(plain)  # type: ignore[arg-type]  # the mistake itself

    def test_what_cannot_be_called_is_no_procedure(self, app: Application) -> None:
        with pytest.raises(TypeError, match=r"'jobs\.add' must be a function"):
            app.procedure("jobs.add")(42)  # type: ignore[type-var]  # the mistake itself


class TestMoments:
    def test_functions_are_kept_in_the_order_of_their_registration(self, app: Application) -> None:
        def other(box: Box) -> None:
            """Another one."""

        for function in (plain, other):
            app.setup(function)
            app.on_stop(function)
        assert app.setups == app.stops == [plain, other]

    def test_a_background_task_is_a_coroutine_function(self, app: Application) -> None:
        assert app.background(waits) is waits
        with pytest.raises(TypeError, match="must be an async function"):
            app.background(plain)

    @pytest.mark.parametrize("moment", ["setup", "on_stop", "on_reload", "metrics", "queues"])
    @pytest.mark.parametrize("function", [waits, 42])
    def test_everything_else_is_a_plain_function(
        self, app: Application, moment: str, function: object
    ) -> None:
        register: Callable[[object], object] = getattr(app, moment)
        with pytest.raises(TypeError, match="must be a plain function"):
            register(function)

    def test_metrics_are_sources_of_numbers(self, app: Application) -> None:
        source = app.metrics(lambda box: {"jobs": box.space["jobs"].len()})
        assert app.metric_sources == [source]

    def test_queues_are_sources_as_well(self, app: Application) -> None:
        source = app.queues(lambda box: [])
        assert app.queue_sources == [source]
        finder = app.queue_by_name(lambda box, name: None)
        assert app.queue_finders == [finder]


class TestMisfit:
    @pytest.fixture
    def misfit(self, app: Application) -> Callable[..., str | None]:
        def add(box: Box, data: object, priority: int = 0) -> None:
            """A procedure."""

        app.procedure("add")(add)
        return lambda *arguments: app.procedures["add"].misfit(list(arguments))

    def test_arguments_that_fit(self, misfit: Callable[..., str | None]) -> None:
        assert misfit("data") is misfit("data", 1) is None

    def test_arguments_that_do_not(self, misfit: Callable[..., str | None]) -> None:
        assert misfit() == "missing a required argument: 'data'"
        assert misfit("data", 1, 2) == "too many positional arguments"


class TestSeveralApplications:
    def test_they_share_one_list_of_procedures(self, app: Application) -> None:
        other = Application("other")
        app.procedure("jobs.add")(plain)
        other.procedure("other.add")(waits)
        assert sorted(Procedures([app, other]).by_name) == ["jobs.add", "other.add"]

    def test_but_no_name(self, app: Application) -> None:
        other = Application("other")
        app.procedure("add")(plain)
        other.procedure("add")(waits)
        with pytest.raises(
            ApplicationConflict, match='the applications "jobs" and "other" both define "add"'
        ):
            Procedures([app, other])

    def test_nor_may_one_be_served_twice(self, app: Application) -> None:
        app.procedure("add")(plain)
        with pytest.raises(ApplicationConflict):
            Procedures([app, app])

    def test_nor_a_prefix(self, app: Application) -> None:
        other = Application("other")
        app.procedures_under("jobs")(lambda name: None)
        other.procedures_under("jobs")(lambda name: None)
        with pytest.raises(ApplicationConflict, match='both define "jobs"'):
            Procedures([app, other])


class TestProceduresThatComeAndGo:
    def test_are_found_by_who_knows_of_their_prefix(self, app: Application) -> None:
        there = {"jobs.by_name.mail:add": plain}
        app.procedures_under("jobs.by_name.")(there.get)
        procedures = Procedures([app])
        found = procedures.find("jobs.by_name.mail:add")
        assert found is not None
        assert (found.name, found.function, found.is_async) == ("jobs.by_name.mail:add", plain, False)
        there.clear()
        assert procedures.find("jobs.by_name.mail:add") is None

    def test_are_asked_for_at_each_call(self, app: Application) -> None:
        asked: list[str] = []

        def find(name: str) -> Any:
            asked.append(name)
            return plain

        app.procedures_under("jobs.")(find)
        procedures = Procedures([app])
        for _ in range(2):
            found = procedures.find("jobs.add")
            assert found is not None
            assert (found.name, found.function, found.is_async) == ("jobs.add", plain, False)
        assert asked == ["jobs.add", "jobs.add"]
        assert procedures.by_name == {}

    def test_may_be_cached_until_the_application_forgets_them(self, app: Application) -> None:
        there = {"jobs.add": plain}
        app.procedures_under("jobs.", is_cached=True)(there.get)
        procedures, others = Procedures([app]), Procedures([app])
        assert procedures.find("jobs.drop") is None
        found = procedures.find("jobs.add")
        assert procedures.by_name == {"jobs.add": found}
        assert others.by_name == {}
        there.clear()
        assert procedures.by_name == {"jobs.add": found}
        app.forget_procedures("jobs.")
        assert procedures.by_name == others.by_name == {}
        assert procedures.find("jobs.add") is None

    def test_only_those_of_the_prefix_are_forgotten(self, app: Application) -> None:
        app.procedure("jobs.add")(plain)
        app.procedures_under("jobs.", is_cached=True)(lambda name: plain)
        app.procedures_under("mail.", is_cached=True)(lambda name: plain)
        procedures = Procedures([app])
        for name in ("jobs.drop", "mail.send"):
            procedures.find(name)
        app.forget_procedures("jobs.")
        assert set(procedures.by_name) == {"jobs.add", "mail.send"}

    def test_of_an_unknown_prefix_cannot_be_forgotten(self, app: Application) -> None:
        with pytest.raises(ValueError, match=r"'jobs' finds no procedures under 'mail\.'"):
            app.forget_procedures("mail.")

    def test_a_cache_ends_with_its_server(self, app: Application) -> None:
        app.procedures_under("jobs.", is_cached=True)(lambda name: plain)
        procedures = Procedures([app])
        procedures.find("jobs.add")
        assert len(app.caches) == 1
        del procedures
        assert len(app.caches) == 0

    def test_are_not_looked_for_under_another_prefix(self, app: Application) -> None:
        asked: list[str] = []
        app.procedures_under("jobs.")(asked.append)
        assert Procedures([app]).find("job.add") is None
        assert asked == []

    @pytest.mark.parametrize("prefix", ["", "box.", "box", "box.space."])
    def test_prefixes_of_the_server_are_refused(self, app: Application, prefix: str) -> None:
        with pytest.raises(ValueError, match="procedures cannot begin with"):
            app.procedures_under(prefix)(lambda name: None)

    def test_a_prefix_is_defined_once(self, app: Application) -> None:
        app.procedures_under("jobs.")(lambda name: None)
        with pytest.raises(ValueError, match="defined twice"):
            app.procedures_under("jobs.")(lambda name: None)

    def test_the_decorator_needs_its_prefix_and_a_plain_function(self, app: Application) -> None:
        with pytest.raises(TypeError, match="needs a prefix"):
            app.procedures_under(plain)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="plain function"):
            app.procedures_under("jobs.")(waits)  # type: ignore[arg-type]
