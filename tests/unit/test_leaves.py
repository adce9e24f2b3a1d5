"""A leaf hangs on the kernel: taken away, it takes nothing along.

Adapters and tools are found by their folder, so one that is deleted leaves all others working: what can be
taken away can be added by somebody who knows the kernel alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = {"__init__", "process_name", "thread_tools"}
USED_BY_CODE = {"__init__", "pipe", "run_python", "spawn"}
ADAPTERS = sorted({path.stem for path in (ROOT / "fdstore" / "integrations").glob("*.py")} - SHARED)
TOOLS = sorted({path.stem for path in (ROOT / "fdstore" / "tools" / "built_in").glob("*.py")} - USED_BY_CODE)
LEAVES = [
    *(f"integrations/{name}.py" for name in ADAPTERS),
    *(f"tools/built_in/{name}.py" for name in TOOLS),
]
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import fdstore
assert fdstore.__file__.startswith(sys.argv[1])
failed = []
for found in pkgutil.walk_packages(fdstore.__path__, "fdstore."):
    if found.name.endswith("__main__") or found.name.startswith("fdstore.integrations."):
        continue
    try:
        importlib.import_module(found.name)
    except ImportError as error:
        if error.name is None or error.name.startswith("fdstore"):
            failed.append(f"{found.name}: {error}")
print(*failed, sep="\\n")
from fdstore.tools.catalogue import BUILT_IN
print(len(BUILT_IN))
"""


def import_all(folder: Path) -> list[str]:
    """What importing every module of a copy of fdstore prints: the failures, then the number of tools."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", IMPORT_ALL, folder], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    # with its bytecode, which is valid for a copy: it takes most of the time to compile
    shutil.copytree(ROOT / "fdstore", folder / "fdstore")
    return folder


@pytest.mark.thorough("`make lint` checks who may import whom")
@pytest.mark.parametrize("leaf", LEAVES)
def test_the_rest_is_imported_without_a_leaf(leaf: str, copy: Path) -> None:
    file = copy / "fdstore" / leaf
    content = file.read_bytes()
    file.unlink()
    try:
        [tools] = import_all(copy)
    finally:
        file.write_bytes(content)

    assert int(tools) == len(TOOLS) + len(USED_BY_CODE) - 1 - leaf.startswith("tools/")
