"""The verbs read and cat: print content."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, raw_option, run_on, verb
from fdstore.errors import NotText, StreamBroken
from fdstore.text.quantities import format_size

if TYPE_CHECKING:
    from fdstore.model.records import Descriptor, Mode, Slice


class BytesOnTerminal(NotText):
    """Bytes were to be printed on a terminal."""

    def __str__(self) -> str:
        return (
            f"{self.fd} is {self.media_type} ({format_size(self.size_bytes)}), not text; write it to a file "
            "with > FILE or fdstore export, or print it here with --raw"
        )


@verb
@click.argument("process", metavar="PROC")
@click.argument("selector", metavar="SELECTOR")
@click.option("--pages", metavar="A[-B]", help="These pages; as SELECTOR#PA-B.")
@click.option("--lines", metavar="A[-B]", help="These lines; as SELECTOR#LA-B.")
@click.option("--chars", metavar="A[-B]", help="These characters; as SELECTOR#CA-B.")
@click.option("--all", "read_all", is_flag=True, help="The whole content.")
@click.option("--mode", type=click.Choice(["page", "line", "char"]), help="The unit. [default: page]")
@click.option("--start", type=click.IntRange(1), metavar="N", help="The first unit. [default: 1]")
@click.option("--count", type=click.IntRange(1), metavar="N", help="Number of units. [default: 1]")
@raw_option
def read(
    session: CliSession,
    process: str,
    selector: str,
    pages: str | None,
    lines: str | None,
    chars: str | None,
    read_all: bool,
    mode: Mode | None,
    start: int | None,
    count: int | None,
    raw: bool,
) -> None:
    """Print a part of a content, chosen by SELECTOR, by one of --pages, --lines and --chars, or by --mode,
    --start and --count.

    Only the text is printed. The default is page 1. For a large content `fdstore cat` needs less memory than
    --all. Reading up to the end of a broken stream prints the text, and then fails.

    \b
    fdstore read triage fd:1#L120-180
    fdstore read triage fd:1 --pages 2-4
    """
    from fdstore.text.selection import selector as parse_selector

    ranges = {letter: given for letter, given in (("P", pages), ("L", lines), ("C", chars)) if given}
    ways = [parse_selector(selector).part is not None, bool(mode or start or count), read_all, *ranges]
    if sum(map(bool, ways)) > 1:
        raise click.UsageError(
            "choose the part in one way: SELECTOR, --pages, --lines, --chars, --all, or --mode with --start"
        )
    for letter, given in ranges.items():
        if not re.fullmatch(r"[0-9]+(-[0-9]+)?", given, re.ASCII):
            raise click.UsageError(f"a range is one number or two, like 2-4, not {given!r}")
        selector = f"{selector}#{letter}{given}"
    with session.process(process) as opened:
        part = opened.read(selector, mode=mode, start=start, count=count, read_all=read_all)
    if session.as_json:
        output.document(part)
        return
    output.content(part.text.encode("utf-8"), raw=raw)
    if output.stdout_is_terminal():
        if part.text and not part.text.endswith("\n"):
            output.line()
        output.note(_position(part))
    if part.state == "broken" and part.chars.rpartition("-")[2] in ("0", str(part.total_chars)):
        raise StreamBroken(part.fd, part.reason or "unknown")


def _position(part: Slice) -> str:
    facts = [part.fd]
    if part.mode == "page":
        last = part.start + part.count - 1
        facts.append(f"page {part.start}" if part.count == 1 else f"pages {part.start}-{last}")
        facts[-1] += f" of {part.pages}"
    facts.append(f"lines {part.lines} of {part.total_lines}")
    facts.append(f"characters {part.chars} of {part.total_chars}")
    if part.continued:
        facts.append("starts inside a line")
    if part.truncated:
        facts.append("ends inside a line")
    if part.state != "sealed":
        facts.append(part.state if part.reason is None else f"{part.state} ({part.reason})")
    return f"[{', '.join(facts)}]"


@verb
@click.argument("process", metavar="PROC")
@click.argument("selector", metavar="FD|SELECTOR")
@raw_option
def cat(session: CliSession, process: str, selector: str, raw: bool) -> None:
    """Print a content of any size, or the part that a selector names, in bounded memory.

    Bytes are written as they are, but to a terminal only with --raw. An open stream is printed as far as it
    is stored now. A broken stream is printed, and then the command fails. With --json each line is a chunk of
    the text, or of the bytes in base64.

    \b
    fdstore cat triage fd:1 > photo.png
    fdstore cat triage name:notes/plan.md#L1-9
    """
    from fdstore.store.contents.exporting import write_part
    from fdstore.text.selection import parse_request

    request = parse_request(selector)
    pieces = output.Pieces(request.fd, as_json=session.as_json, raw=raw)

    def begin(found: Descriptor) -> None:
        expect(pieces, found, to_terminal=raw or session.as_json)

    with session.process(process) as opened:
        run_on(opened, write_part(opened.handle, request.fd, request.part, pieces.print, begin=begin))
        state = opened.stat(request.fd)
    pieces.end()
    report_unfinished(state)


def expect(pieces: output.Pieces, found: Descriptor, *, to_terminal: bool) -> None:
    """Let `pieces` print text or bytes, whichever the content is. Raises `BytesOnTerminal` for bytes on a
    terminal unless they may go `to_terminal`."""
    if found.kind == "bytes":
        if output.stdout_is_terminal() and not to_terminal:
            raise BytesOnTerminal(found.fd, found.media_type, found.bytes)
        pieces.print_bytes()


def report_unfinished(state: Descriptor) -> None:
    """Report after the text that its stream is still open. Raises `StreamBroken` if it is broken."""
    if state.state == "open":
        output.note(f"[{state.fd} is still being written]")
    elif state.state == "broken":
        raise StreamBroken(state.fd, state.reason or "unknown")
