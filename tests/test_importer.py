"""Finding an application by "module:attribute"."""

from __future__ import annotations

import asyncio
import sys
from asyncio import Runner
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

from iproto_server.app import Application
from iproto_server.importer import ApplicationImportError, ApplicationModules, import_object


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that modules are imported from; what a test imported is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refusal(target: str) -> str:
    with pytest.raises(ApplicationImportError) as caught:
        import_object(target)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_attribute_of_a_module(modules: Path) -> None:
    (modules / "importer_jobs.py").write_text("app = 42\nclass Holder:\n    app = 43\n")
    assert import_object("importer_jobs:app") == 42
    assert import_object("importer_jobs:Holder.app") == 43


@pytest.mark.parametrize("target", ["jobs", "jobs:", ":app", ""])
def test_both_halves_are_needed(target: str) -> None:
    assert refusal(target) == f'cannot import "{target}": expected MODULE:ATTRIBUTE'


def test_a_module_that_is_not_there() -> None:
    assert (
        refusal("no_such_jobs:app") == 'cannot import "no_such_jobs:app": there is no module "no_such_jobs"'
    )


def test_a_package_without_that_module(modules: Path) -> None:
    (modules / "importer_package").mkdir()
    (modules / "importer_package" / "__init__.py").touch()
    assert refusal("importer_package.jobs:app").endswith('there is no module "importer_package.jobs"')


def test_an_attribute_that_is_not_there(modules: Path) -> None:
    (modules / "importer_jobs.py").write_text("class Holder: pass\n")
    assert refusal("importer_jobs:app").endswith('"importer_jobs" has no attribute "app"')
    assert refusal("importer_jobs:Holder.app").endswith('"importer_jobs:Holder" has no attribute "app"')


def test_a_module_that_imports_something_missing_is_not_called_missing_itself(modules: Path) -> None:
    (modules / "importer_jobs.py").write_text("\nimport no_such_dependency\n")
    message = refusal("importer_jobs:app")
    assert (
        "importing \"importer_jobs\" raised ModuleNotFoundError: No module named 'no_such_dependency'"
        in message
    )
    assert message.endswith("importer_jobs.py, line 2)")


def test_a_module_that_raises(modules: Path) -> None:
    (modules / "importer_jobs.py").write_text("raise RuntimeError('two\\nlines')\n")
    message = refusal("importer_jobs:app")
    assert "raised RuntimeError: two lines" in message
    assert message.endswith("importer_jobs.py, line 1)")


def test_a_module_that_exits(modules: Path) -> None:
    (modules / "importer_jobs.py").write_text("raise SystemExit(5)\n")
    assert "raised SystemExit: 5" in refusal("importer_jobs:app")


def test_a_module_that_is_not_python(modules: Path) -> None:
    (modules / "importer_jobs.py").write_text("x = 1\ndef broken(:\n")
    message = refusal("importer_jobs:app")
    assert "raised SyntaxError: invalid syntax" in message
    assert message.endswith("importer_jobs.py, line 2)")


@contextmanager
def loaded_anew(loader: ApplicationModules) -> Iterator[list[Application]]:
    """Load applications again, as in a loop that does nothing else."""
    with Runner() as runner:
        loading = loader.load_anew()
        applications = runner.run(loading.__aenter__())
        try:
            yield applications
        except BaseException as error:
            runner.run(loading.__aexit__(type(error), error, error.__traceback__))
            raise
        runner.run(loading.__aexit__(None, None, None))


class TestLoadingAnew:
    APPLICATION = "from iproto_server import Application\napp = Application('{0}')\n"

    def test_gives_other_objects_of_the_newest_source(self, modules: Path) -> None:
        path = modules / "importer_jobs.py"
        path.write_text(self.APPLICATION.format("one"))
        loader = ApplicationModules(["importer_jobs:app"])
        [first] = loader.load()
        assert isinstance(first, Application)
        assert loader.load() == [first]
        path.write_text(self.APPLICATION.format("two"))
        with loaded_anew(loader) as [second]:
            assert (first.name, second.name) == ("one", "two")
        assert loader.load() == [second]

    def test_is_undone_where_the_block_raises(self, modules: Path) -> None:
        (modules / "importer_jobs.py").write_text(self.APPLICATION.format("one"))
        loader = ApplicationModules(["importer_jobs:app"])
        [first] = loader.load()
        (modules / "importer_more.py").touch()
        (modules / "importer_jobs.py").write_text("import importer_more\n" + self.APPLICATION.format("two"))
        with pytest.raises(ZeroDivisionError), loaded_anew(loader) as [_]:
            assert "importer_more" in sys.modules
            raise ZeroDivisionError
        assert loader.load() == [first]
        assert "importer_more" not in sys.modules

    def test_leaves_installed_modules_alone(self, modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        installed = modules / "site-packages"
        installed.mkdir()
        monkeypatch.syspath_prepend(str(installed))
        (installed / "importer_jobs.py").write_text("import importer_more\n" + self.APPLICATION.format("one"))
        (installed / "importer_more.py").touch()
        loader = ApplicationModules(["importer_jobs:app"])
        [first] = loader.load()
        more = sys.modules["importer_more"]
        with loaded_anew(loader) as [second]:
            assert first is not second
            assert sys.modules["importer_more"] is more

    def test_leaves_the_server_alone(self, modules: Path) -> None:
        (modules / "importer_jobs.py").write_text(self.APPLICATION.format("one"))
        loader = ApplicationModules(["importer_jobs:app"])
        loader.load()
        before = {name: module for name, module in sys.modules.items() if name.startswith("iproto_server")}
        with loaded_anew(loader):
            assert {name: sys.modules[name] for name in before} == before

    def test_leaves_no_compiled_files_of_its_own(self, modules: Path) -> None:
        (modules / "importer_jobs.py").write_text(self.APPLICATION.format("one"))
        loader = ApplicationModules(["importer_jobs:app"])
        before = sys.pycache_prefix, sys.dont_write_bytecode
        with loaded_anew(loader):
            assert (sys.pycache_prefix, sys.dont_write_bytecode) == before
        assert not list(modules.rglob("*.pyc"))

    def test_what_is_no_application_is_refused(self, modules: Path) -> None:
        (modules / "importer_jobs.py").write_text("app = 42\n")
        with pytest.raises(ApplicationImportError, match="it is of type int, not an iproto_server"):
            ApplicationModules(["importer_jobs:app"]).load()

    def test_lets_others_run_after_each_compiled_file(self, modules: Path) -> None:
        names = [f"importer_more_{number}" for number in range(20)]
        for name in names:
            (modules / f"{name}.py").write_text("number = 1\n")
        path = modules / "importer_jobs.py"
        path.write_text(f"import {', '.join(names)}\n" + self.APPLICATION.format("one"))
        loader = ApplicationModules(["importer_jobs:app"])
        [first] = loader.load()
        seen: list[object] = []

        async def load() -> None:
            others = asyncio.create_task(other())
            async with loader.load_anew() as [second]:
                assert second is not first
                assert sys.modules["importer_more_0"].number == 2
            others.cancel()

        async def other() -> None:
            while True:
                seen.append(sys.modules["importer_jobs"].app)
                if len(seen) == len(names):
                    # Compiled already, and changed again.
                    for name in names:
                        (modules / f"{name}.py").write_text("number = 2\n")
                await asyncio.sleep(0)

        asyncio.run(load())
        assert len(seen) > len(names)
        assert set(seen) == {first}

    def test_imports_what_is_compiled_already(self, modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (modules / "importer_more.py").touch()
        (modules / "importer_jobs.py").write_text("import importer_more\n" + self.APPLICATION.format("one"))
        loader = ApplicationModules(["importer_jobs:app"])
        loader.load()
        compiled: list[str] = []

        def compile_it(self: SourceFileLoader, data: bytes, path: str) -> CodeType:
            compiled.append(Path(path).name)
            assert "importer_jobs" in sys.modules  # the old one
            return compile(data, path, "exec")

        monkeypatch.setattr(SourceFileLoader, "source_to_code", compile_it)
        with loaded_anew(loader):
            assert sorted(compiled) == ["importer_jobs.py", "importer_more.py"]
