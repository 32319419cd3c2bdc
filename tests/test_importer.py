"""Finding an application by "module:attribute"."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iproto_server.importer import ApplicationImportError, import_object


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
