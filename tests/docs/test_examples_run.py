"""Each project of examples/ prints what its README shows, by the commands of its README."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))
AT_ONCE = 4
"""They wait for most of their time: for leases, workers and a slow build."""
LONGEST = "map-reduce"

LIKE_DOCTEST = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(name: str, language: str) -> list[str]:
    readme = (EXAMPLES / name / "README.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)


def run_as_the_readme_says(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands in a copy of the project, on an embedded store of its own."""
    made = shutil.ignore_patterns("out", "documents", "*.log", "*.csv", "*.gz", "__pycache__")
    shutil.copytree(EXAMPLES / name, folder / name, ignore=made)
    own = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FDSTORE_DATA_DIR": str(folder / f"{name}-data"),
    }
    other = {
        key: value for key, value in os.environ.items() if not key.startswith(("FDSTORE_", "ANTHROPIC_"))
    }
    [commands] = blocks(name, "sh")
    try:
        return subprocess.run(
            ["bash", "-e", "-c", commands],
            cwd=folder / name,
            env={**other, **own},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    finally:
        down = [sys.executable, "-m", "fdstore", "down"]
        subprocess.run(down, env={**other, **own}, stdout=subprocess.DEVNULL, check=True)


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Future[subprocess.CompletedProcess[str]]]]:
    folder = tmp_path_factory.mktemp("examples")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        longest_first = sorted(NAMES, key=lambda name: name != LONGEST)
        yield {name: pool.submit(run_as_the_readme_says, name, folder) for name in longest_first}


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_its_readme_shows(name, runs):
    [shown] = blocks(name, "text")

    done = runs[name].result()

    assert done.returncode == 0, done.stderr
    assert doctest.OutputChecker().check_output(shown, done.stdout, LIKE_DOCTEST), done.stdout


def test_every_example_is_in_the_table():
    table = (EXAMPLES / "README.md").read_text("utf-8")
    projects = set(NAMES)

    assert set(re.findall(r"^\| \[`([\w-]+)`\]\(\1/\)", table, re.MULTILINE)) == projects
    assert set(re.findall(r"\(frameworks/(\w+\.py)\)", table)) == {
        path.name for path in (EXAMPLES / "frameworks").glob("*.py")
    }


def test_the_scripts_stay_out_of_the_code_that_users_copy():
    programs = [path for path in EXAMPLES.glob("*-*/*.py") if path.name != "script.py"]

    assert programs
    assert not [path for path in programs if "fdstore.testing" in path.read_text("utf-8")]
