"""`python -m fdstore.testing SCRIPT.py`, with a command and without one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import Child
from tests.waiting import PATIENCE_S

SCRIPT = "from fdstore.testing import say\nscript = [say('It is 3.')]\n"
ASK = """
import anthropic
question = [{"role": "user", "content": "What is 1 + 2?"}]
print(anthropic.Anthropic().messages.create(model="any", max_tokens=9, messages=question).content[0].text)
"""
ASK_WITHOUT_SDK = """
import json, os, urllib.request
question = [{"role": "user", "content": "What is 1 + 2?"}]
request = urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
    json.dumps({"model": "any", "max_tokens": 9, "messages": question}).encode(),
    {
        "x-api-key": os.environ["ANTHROPIC_API_KEY"],
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
    },
)
try:
    print(json.load(urllib.request.urlopen(request))["content"][0]["text"])
except urllib.error.HTTPError as error:
    raise SystemExit(error.read().decode())
"""


def run(folder: Path, script: str, *command: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    return subprocess.run(
        [sys.executable, "-m", "fdstore.testing", "script.py", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.thorough("the same without the SDK is tested")
def test_a_command_is_answered_by_the_script(tmp_path: Path):
    done = run(tmp_path, SCRIPT, "--", sys.executable, "-c", ASK)

    assert done.stdout == "It is 3.\n"
    assert done.stderr == "The model is a script: script.py\n"
    assert done.returncode == 0


def test_the_model_of_a_command_can_refuse_tools_that_are_loaded_later(tmp_path: Path):
    tools = [{"name": "f", "input_schema": {"type": "object"}, "defer_loading": False}]
    ask = ASK_WITHOUT_SDK.replace('"messages": question', f'"messages": question, "tools": {tools}')

    done = run(tmp_path, SCRIPT, "--refuse", "defer_loading", "--", sys.executable, "-c", ask)

    assert "tools.0.defer_loading: extra inputs are not permitted" in done.stderr
    assert done.returncode == 1


def test_the_exit_code_is_that_of_the_command(tmp_path: Path):
    assert run(tmp_path, SCRIPT, "--", "sh", "-c", "exit 7").returncode == 7
    assert run(tmp_path, SCRIPT, "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_an_exception_of_the_script_is_printed(tmp_path: Path):
    done = run(
        tmp_path,
        "def script(request):\n    raise LookupError('no page')\n",
        "--",
        sys.executable,
        "-c",
        ASK_WITHOUT_SDK,
    )

    assert done.returncode == 1
    assert done.stderr.endswith("LookupError: no page\n")


def test_without_a_command_other_terminals_find_the_model(tmp_path: Path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "fdstore.testing", "script.py"]
    serving = Child(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert serving.stdout is not None
    exports = serving.stdout.readline()

    asking = ["sh", "-c", f'{exports}\n"$0" -c "$1"', sys.executable, ASK_WITHOUT_SDK]
    done = subprocess.run(asking, capture_output=True, text=True, timeout=PATIENCE_S)
    serving.signal_beside_main(signal.SIGTERM)

    assert (done.stdout, done.stderr) == ("It is 3.\n", "")
    assert serving.wait(PATIENCE_S) == 0
    serving.stdout.close()


@pytest.mark.parametrize(
    ("script", "command", "code", "said"),
    [
        (SCRIPT, ["--port", "x"], 2, "'x' is not a valid integer"),
        ("answers = []\n", ["--", "true"], 2, "script.py: assigns nothing to `script`"),
        (SCRIPT, ["--", "no-such-command"], 127, "no-such-command: "),
    ],
    ids=["no port", "no script", "unknown command"],
)
def test_a_wrong_call_says_what_is_wrong(
    tmp_path: Path, script: str, command: list[str], code: int, said: str
):
    done = run(tmp_path, script, *command)

    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (code, True, False)
