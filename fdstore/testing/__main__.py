"""Run a command with a scripted model in place of the real one.

    python -m fdstore.testing script.py -- python my_agent.py
    python -m fdstore.testing script.py -- fdstore run triage.toml -p "Why did the build fail?"

`script.py` assigns to `script` what `ScriptedModel` takes. The command, and all that it starts, finds the
model through ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY, so it need not be Python. The exit code is the
command's, or 1 if the script's own function raised; that exception is printed.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from fdstore.testing.server import ScriptedModel

USAGE = "usage: python -m fdstore.testing SCRIPT.py -- COMMAND [ARGUMENT]..."


def main(arguments: list[str]) -> int:
    """Run the command; return its exit code."""
    path, separator, command = (arguments[0] if arguments else ""), arguments[1:2], arguments[2:]
    if separator != ["--"] or not command:
        print(USAGE, file=sys.stderr)
        return 2
    with ScriptedModel(load_script(Path(path))) as model:
        print(f"The model is a script: {path}", file=sys.stderr)
        try:
            child = subprocess.Popen(command, env={**os.environ, **model.environ})
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", file=sys.stderr)
            return 127
        # a terminal sends Ctrl-C to the command too, which decides when to end
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        code = child.wait()
    return 128 - code if code < 0 else code


def load_script(path: Path) -> Any:
    """Return what a Python file assigns to `script`."""
    if not path.is_file():
        sys.exit(f"{path}: there is no such file\n{USAGE}")
    spec = importlib.util.spec_from_file_location("script", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "script"):
        sys.exit(f"{path}: assigns nothing to `script`")
    return module.script


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
