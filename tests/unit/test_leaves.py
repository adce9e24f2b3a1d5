"""A leaf hangs on the kernel: taken away, it takes nothing along.

Adapters and tools are found by their folder, so one that is deleted leaves all others working: what can be
taken away can be added by somebody who knows the kernel alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
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
IMPORTER = """
import importlib, os, pkgutil, sys

def import_all():
    failed = []
    import fdstore
    assert fdstore.__file__.startswith(sys.argv[1])
    for found in pkgutil.walk_packages(fdstore.__path__, "fdstore."):
        if found.name.endswith("__main__") or found.name.startswith("fdstore.integrations."):
            continue
        try:
            importlib.import_module(found.name)
        except ImportError as error:
            if error.name is None or error.name.startswith("fdstore"):
                failed.append(f"{found.name}: {error}")
    return failed

def import_in_a_fork(pipe):
    failed = import_all()
    from fdstore.tools.catalogue import BUILT_IN
    others = [name for name in sys.modules if name.partition(".")[0] not in ("fdstore", "__main__")]
    os.write(pipe, repr((failed, len(BUILT_IN), others)).encode())

def in_a_fork():
    reading, writing = os.pipe()
    if not (child := os.fork()):
        status = 1
        try:
            import_in_a_fork(writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading) as pipe:
        text = pipe.read()
    return text if os.waitpid(child, 0)[1] == 0 else "([], -1, [])"

sys.path.insert(0, sys.argv[1])
for name in eval(in_a_fork())[2]:  # what all imports have in common: the packages of others
    try:
        importlib.import_module(name)
    except ImportError:
        pass
assert "fdstore" not in sys.modules
for line in sys.stdin:
    importlib.invalidate_caches()
    failed, tools, _ = eval(in_a_fork())
    print(*failed, tools, sep="\\t", flush=True)
"""
"""For each line of its input, imports every module of a copy of fdstore in a fork, and prints the failures,
then the number of tools."""


class Copy:
    """A copy of fdstore whose modules are imported without some of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "fdstore"
        # with its bytecode, which is valid for a copy: it takes most of the time to compile
        shutil.copytree(ROOT / "fdstore", self.folder)
        self._importer = subprocess.Popen(
            [sys.executable, "-P", "-c", IMPORTER, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def import_all(self) -> list[str]:
        """Import every module. Return the failures, then the number of tools."""
        assert self._importer.stdin is not None
        assert self._importer.stdout is not None
        print(file=self._importer.stdin, flush=True)
        return self._importer.stdout.readline().rstrip("\n").split("\t")

    def close(self) -> None:
        self._importer.communicate()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    made = Copy(tmp_path_factory.mktemp("copy"))
    yield made
    made.close()


@pytest.mark.thorough("`make lint` checks who may import whom")
@pytest.mark.parametrize("leaf", LEAVES)
def test_the_rest_is_imported_without_a_leaf(leaf: str, copy: Copy) -> None:
    file = copy.folder / leaf
    content = file.read_bytes()
    file.unlink()
    try:
        [tools] = copy.import_all()
    finally:
        file.write_bytes(content)

    assert int(tools) == len(TOOLS) + len(USED_BY_CODE) - 1 - leaf.startswith("tools/")
