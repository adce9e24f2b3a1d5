"""Tests the adapters with the oldest versions of their frameworks: `make test-frameworks-oldest`.

    python .ci/oldest_frameworks.py                      all adapters
    python .ci/oldest_frameworks.py langchain strands    those of these extras

The oldest version is the lower bound of the extra in pyproject.toml. Each is installed in an environment of
its own, .frameworks/oldest-NAME, with the newest versions of everything else that it allows.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ["hypothesis", "pytest", "pytest-asyncio", "pytest-timeout"]
MORE = {"agno": ["anthropic"], "deepagents": ["langchain-tests"], "pydantic-ai": ["pydantic-ai-harness"]}
"""What the tests of single adapters need too."""


def main() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    tests = {
        path.stem.removeprefix("test_").replace("_", "-"): path
        for path in sorted(ROOT.glob("tests/frameworks/*/test_*.py"))
    }
    tests = {name: path for name, path in tests.items() if name in extras}  # without those of no adapter
    failed = [name for name in sys.argv[1:] or tests if not passes(name, oldest(extras[name]), tests[name])]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def oldest(requirements: list[str]) -> list[str]:
    """Return requirements with their lower bounds as the versions, without fdstore's own extras.

    >>> oldest(["langchain>=1.3,<2", "fdstore[embedded]"])
    ['langchain==1.3']
    """
    others = [each for each in requirements if not each.startswith("fdstore[")]
    return [re.sub(r">=([\d.]+).*", r"==\1", each) for each in others]


def passes(name: str, requirements: list[str], tests: Path) -> bool:
    print(f"{name}: {' '.join(requirements)}", flush=True)
    environment = ROOT / ".frameworks" / f"oldest-{name}"
    venv.create(environment, clear=True, with_pip=True)
    python = environment / "bin" / "python"
    packages = [*requirements, *MORE.get(name, []), *TESTS, "--editable", f"{ROOT}[embedded]"]
    options = ["-o", "filterwarnings=ignore", "-o", "asyncio_mode=auto"]
    commands = (["pip", "install", "--quiet", *packages], ["pytest", str(tests), *options])
    return all(subprocess.run([python, "-m", *each], cwd=ROOT).returncode == 0 for each in commands)


if __name__ == "__main__":
    main()
