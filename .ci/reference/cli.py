"""The page of the command line: the help of every verb, as click formats it, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from fdstore.cli import EPILOG, VERBS, cli, load_verb
from fdstore.cli.session import common_options
from fdstore_workers.__main__ import worker
from reference import markdown

INTRODUCTION = """
`fdstore [OPTIONS] VERB ...`; `fdstore VERB --help` prints what this page says of a verb. The [common
options](#common-options) may stand before the verb or after it; those after it win.

An error is one line on standard error, with `--json` a JSON object with its [type](errors.md). The exit
code is then 1; 2 for a usage error, which an invalid URL or prefix of the store is too; 141 if the reader
of the output has gone; 130 after Ctrl-C, and 128 + n after another signal n. Verbs whose exit code says
more say so below.
"""


class MarkdownFormatter(click.HelpFormatter):
    """Collect the help of one command as blocks of Markdown. `hidden` are rows of options to leave out."""

    def __init__(self, hidden: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self._hidden = hidden

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        self.blocks.append(markdown.fence(f"{prog} {args}"))

    def write_heading(self, heading: str) -> None:
        self.blocks.append(f"{heading}:")

    def write_text(self, text: str) -> None:
        for part in re.split(r"\n\s*\n", text):
            if part.startswith("\b\n"):
                self.blocks.append(markdown.fence(part.removeprefix("\b\n")))
            elif part.strip():
                self.blocks.append(markdown.paragraph(markdown.prose(part)))

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        shown = [
            markdown.item(f"`{name}`: {markdown.prose(help)}")
            for name, help in rows
            if name not in self._hidden
        ]
        if shown:
            self.blocks.append("\n".join(shown))
        else:
            self.blocks.pop()  # the heading

    def write_paragraph(self) -> None:
        pass


def page() -> str:
    root = click.Context(cli, info_name="fdstore", **cli.context_settings)
    common = [option.get_help_record(root) for option in common_options()]
    help_option = cli.get_help_option(root)
    assert help_option is not None
    common.append(help_option.get_help_record(root))
    options = MarkdownFormatter()
    options.write_dl([record for record in common if record is not None])
    hidden = frozenset(record[0] for record in common if record is not None)
    names = MarkdownFormatter()
    names.write_text(EPILOG)
    blocks = [markdown.paragraphs(INTRODUCTION), *names.blocks, "## Common options", *options.blocks]
    for title, section in VERBS.items():
        blocks.append(f"## {title}")
        for name in section:
            command = worker if name == "worker" else load_verb(name)
            blocks += [f"### fdstore {name}", *verb(name, command, root, hidden)]
    return markdown.page("Command line", blocks)


def verb(name: str, command: click.Command, root: click.Context, hidden: frozenset[str]) -> list[str]:
    """Return the help of one verb without the options in `hidden`."""
    formatter = MarkdownFormatter(hidden)
    command.format_help(click.Context(command, info_name=name, parent=root), formatter)
    return formatter.blocks
