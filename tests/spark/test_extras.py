"""What the package needs where: nothing to be imported, and one sentence where an extra is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_tarantool.extras import LIBRARIES, MissingExtraError, explains_missing
from tests.programs import REPOSITORY

_WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
sys.path.insert(0, {repository!r})
"""


def run_without(absent: set[str], program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a Python that lacks some libraries."""
    text = _WITHOUT.format(absent=absent, repository=str(REPOSITORY)) + program
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)


def test_the_package_is_importable_without_any_extra() -> None:
    """Spark imports every package named `pyspark_…`: one that fails takes all Python data sources with it."""
    done = run_without(set(LIBRARIES), "import pyspark_tarantool; print(pyspark_tarantool.__name__)")
    assert (done.stdout, done.stderr) == ("pyspark_tarantool\n", "")


def test_the_data_source_is_importable_with_pyspark_alone() -> None:
    absent = {*LIBRARIES, "zstandard", "msgpack", "google_crc32c"} - {"pyspark", "py4j"}
    program = "import pyspark_tarantool; print(pyspark_tarantool.DefaultSource.name())"
    done = run_without(absent, program)
    assert (done.stdout, done.stderr) == ("tarantool\n", "")


def test_spark_finds_it_in_a_folder_on_the_path() -> None:
    """`iter_modules`, with which Spark looks for data sources, lists folders and asks no import hooks."""
    program = (
        "import pkgutil; print([each.name for each in pkgutil.iter_modules() if 'pyspark_' in each.name])"
    )
    assert "pyspark_tarantool" in run_without(set(), program).stdout


@pytest.mark.parametrize("job", ["backlog", "lifecycle", "suspects", "export"])
def test_a_job_without_pyspark_says_what_to_install(job: str) -> None:
    program = f"from pyspark_tarantool.__main__ import main; sys.exit(main(['{job}', '.']))"
    done = run_without({"pyspark"}, program)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"pyspark_tarantool.{job}: pyspark is not installed: "
        "run pip install 'iproto-server[spark]' for this Python\n",
    )


def test_other_missing_modules_are_not_explained() -> None:
    @explains_missing
    def imports(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    with pytest.raises(MissingExtraError, match=r"pyarrow is not installed: run pip install"):
        imports("pyarrow.fs")
    with pytest.raises(ModuleNotFoundError, match="my_own"):
        imports("my_own")


def test_a_query_without_pyarrow_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "from pyspark_tarantool import DefaultSource\n"
        f"source = DefaultSource({{'path': {str(tmp_path)!r}, 'space': 'queue', 'mode': 'snapshot'}})\n"
        "try: source.schema()\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = run_without({"pyarrow"}, program)
    assert done.stdout.startswith("MissingExtraError pyarrow is not installed: run pip install"), done.stderr
