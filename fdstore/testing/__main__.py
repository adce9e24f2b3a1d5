"""Play a script as the model of a command, or of other terminals.

    python -m fdstore.testing script.py -- python my_agent.py
    python -m fdstore.testing script.py -- fdstore run triage.toml -p "Why did the build fail?"
    python -m fdstore.testing script.py --port 8765

`script.py` assigns to `script` what `ScriptedModel` takes. A command, and all that it starts, finds the model
through ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY, or OPENAI_BASE_URL and OPENAI_API_KEY, so it need not be
Python. The exit code is the command's, or 1 if the script's own function raised; that exception is printed.
Without a command these variables are printed as lines for a shell, one for each SDK, and the model answers
until SIGINT or SIGTERM.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, get_args

import click

from fdstore.setup.signal_waits import SIGNALS_SEEN_S
from fdstore.testing.dialects import Quirk
from fdstore.testing.rules import Feature
from fdstore.testing.server import ScriptedModel


@click.command(
    help="Play SCRIPT.py, which assigns to `script`, as the model of COMMAND. Without a command, print the "
    "variables that direct agents to the model, and serve it until Ctrl-C.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("path", metavar="SCRIPT.py", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Listen on this port of 127.0.0.1. [default: any free one]",
)
@click.option(
    "--refuse",
    "refused",
    multiple=True,
    type=click.Choice(get_args(Feature)),
    help="Refuse requests with this, as servers do that do not know it.",
)
@click.option(
    "--quirk",
    "quirks",
    multiple=True,
    type=click.Choice(get_args(Quirk)),
    help="Stream answers of Chat Completions as some servers do, see `fdstore.testing.Quirk`.",
)
@click.argument("command", metavar="[-- COMMAND [ARGUMENT]...]", nargs=-1)
def main(
    path: Path,
    port: int,
    refused: tuple[Feature, ...],
    quirks: tuple[Quirk, ...],
    command: tuple[str, ...],
) -> None:
    script = load_script(path)
    try:
        model = ScriptedModel(script, port=port, refuses=refused, quirks=quirks)
    except OSError as error:
        raise click.ClickException(f"port {port}: {error.strerror}") from error
    with model:
        code = run_command(model, path, command) if command else serve(model)
    sys.exit(code)


def run_command(model: ScriptedModel, path: Path, command: tuple[str, ...]) -> int:
    """Run a command on the model; return its exit code."""
    click.echo(f"The model is a script: {path}", err=True)
    try:
        child = subprocess.Popen(command, env={**os.environ, **model.environ})
    except OSError as error:
        click.echo(f"{command[0]}: {error.strerror}", err=True)
        return 127
    # a terminal sends Ctrl-C to the command too, which decides when to end
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    code = child.wait()
    return 128 - code if code < 0 else code


def serve(model: ScriptedModel) -> int:
    """Print where the model is, and wait for SIGINT or SIGTERM."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    for _, named in itertools.groupby(model.environ.items(), lambda each: each[0].partition("_")[0]):
        click.echo(" ".join(["export", *(f"{name}={value}" for name, value in named)]))
    while not ended.wait(SIGNALS_SEEN_S):
        pass
    return 0


def load_script(path: Path) -> Any:
    """Return what a Python file assigns to `script`."""
    spec = importlib.util.spec_from_file_location("script", path)
    if spec is None or spec.loader is None:
        raise click.UsageError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "script"):
        raise click.UsageError(f"{path}: assigns nothing to `script`")
    return module.script


if __name__ == "__main__":
    main()
