"""What a worker imports before it forks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fdstore.model.providers import PROVIDERS
from tests.waiting import PATIENCE_S

WORKER = """
import os, sys

SDKS = ("anthropic", "boto3", "openai", "celery")

def at_first_fork(event, given):
    if event == "os.fork":
        print(*(name for name in SDKS if name in sys.modules), flush=True)
        os._exit(0)

from fdstore_workers.__main__ import main
sys.addaudithook(at_first_fork)
sys.argv[1:] = ["--url", "redis://127.0.0.1:1"]
main()
"""


def imported(**keys: str) -> list[str]:
    """Return the packages that a worker with these variables has imported when it forks."""
    all_keys = {key for row in PROVIDERS.values() for key in row.keys}
    kept = {name: value for name, value in os.environ.items() if name not in all_keys}
    done = subprocess.run(
        [sys.executable, "-P", "-c", WORKER],
        env={**kept, **keys},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.thorough("imports every SDK in processes of its own")
def test_the_processes_of_a_worker_share_the_sdks_that_have_a_key() -> None:
    assert imported(ANTHROPIC_API_KEY="x") == ["anthropic", "celery"]
    assert imported(OPENAI_API_KEY="x") == ["openai", "celery"]
    assert imported() == ["celery"]
