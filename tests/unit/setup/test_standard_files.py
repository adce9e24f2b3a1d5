"""The numbers of the standard files stay theirs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, os, sys
from fdstore.setup.standard_files import reserve_standard_files
reserve_standard_files()
found = [os.readlink(f"/proc/self/fd/{each}") for each in range(3)]
taken = os.open(os.devnull, os.O_RDONLY)
missing = [each is None for each in (sys.stdin, sys.stdout, sys.stderr)]
os.write(%d, json.dumps([found, taken > 2, missing]).encode())
"""


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_a_closed_one_is_the_null_device(closed: tuple[int, ...]) -> None:
    read, write = os.pipe()
    closing = " ".join(f"{each}>&-" for each in closed)
    words = ["sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, "-c", PROGRAM % write]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[write]) as process:
        os.close(write)
        with open(read, encoding="utf-8") as told:
            links, has_another_number, missing = json.load(told)
        process.communicate()

    assert missing == [link == os.devnull for link in links] == [each in closed for each in range(3)]
    assert has_another_number
