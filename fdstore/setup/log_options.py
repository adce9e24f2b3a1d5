"""The options --log-level and --log-format, alike in every command that logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])


def log_options(default_level: str, detail: str = "") -> Callable[[Command], Command]:
    """Return a decorator that adds both options. `detail` ends the help of --log-level."""

    def add(command: Command) -> Command:
        level = click.option(
            "--log-level",
            type=click.Choice(["debug", "info", "warning", "error"]),
            default=default_level,
            show_default=True,
            help=f"Minimum level of log messages{detail}.",
        )
        log_format = click.option(
            "--log-format",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            help="Format of log messages on standard error; json: one object a line, with its process.",
        )
        return level(log_format(command))

    return add
