"""The verb search: print matching lines as grep does, while the search runs, without a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import NOTHING_FOUND, CliSession, colour_option, raw_option, run_on, verb

if TYPE_CHECKING:
    from fdstore.client import Process
    from fdstore.text.grep import GrepPrinter
    from fdstore.text.search import Matcher

AROUND = click.IntRange(0, 100)


@verb
@click.argument("process", metavar="PROC")
@click.argument("selector", metavar="SELECTOR")
@click.argument("pattern", metavar="PATTERN")
@click.option("-i", "--ignore-case", is_flag=True, help="Ignore case distinctions.")
@click.option("-v", "--invert-match", is_flag=True, help="Print the lines that do not match.")
@click.option("-c", "--count", "count_only", is_flag=True, help="Print only the number of matching lines.")
@click.option("-o", "--only-matching", is_flag=True, help="Print only the matches, one per line.")
@click.option(
    *("-m", "--max-count", "--max-matches"), type=click.IntRange(1), metavar="N", help="Stop after N lines."
)
@click.option("-A", "--after-context", type=AROUND, metavar="N", help="Lines after each match, at most 100.")
@click.option(
    "-B", "--before-context", type=AROUND, metavar="N", help="Lines before each match, at most 100."
)
@click.option("-C", "--context", type=AROUND, metavar="N", help="Lines around each match, at most 100.")
@click.option(
    "-n/-N", "--line-number/--no-line-number", default=True, help="Print line numbers. [default: -n]"
)
@colour_option
@raw_option
def search(
    session: CliSession,
    process: str,
    selector: str,
    pattern: str,
    ignore_case: bool,
    invert_match: bool,
    count_only: bool,
    only_matching: bool,
    max_count: int | None,
    after_context: int | None,
    before_context: int | None,
    context: int | None,
    line_number: bool,
    colour: str,
    raw: bool,
) -> None:
    """Print the lines that match PATTERN, as `grep -n` does.

    PATTERN has the syntax of RE2: no look-around and no back-references, so matching takes linear time.
    Lines are printed as they are found, without a limit. On a terminal, a line longer than 2000 characters
    is shortened to the part around the match. With --json each line is a document: a match with the `column`
    of its first character and, if it has several, the number of its `hits`; context without. The exit code
    is 0 if a line matches, 1 if none does, 2 after an error.

    \b
    fdstore search triage fd:1 'ERROR (\\d+)' -C 2
    fdstore search triage fd:1#L1000-2000 -i timeout
    """
    from fdstore.cli.found_lines import FoundLines, JsonLines
    from fdstore.text.grep import GrepPrinter
    from fdstore.text.pattern import Pattern
    from fdstore.text.search import Inverted
    from fdstore.text.selection import parse_request

    if session.as_json and only_matching:
        raise click.UsageError("--json has the lines and where they match; leave out -o")
    around = 0 if context is None or only_matching else context
    before = around if before_context is None or only_matching else before_context
    after = around if after_context is None or only_matching else after_context
    compiled = Pattern(pattern, ignore_case=ignore_case)
    printer = None
    if not count_only:
        lines: JsonLines | FoundLines = (
            JsonLines(parse_request(selector).fd, None if invert_match else compiled)
            if session.as_json
            else FoundLines(
                compiled,
                numbered=line_number,
                only_matching=only_matching,
                inverted=invert_match,
                coloured=output.use_colours(colour),
                escaped=output.stdout_is_terminal() and not raw,
            )
        )
        printer = GrepPrinter(before, after, max_matches=max_count, layout=lines, separator=lines.separator)
    matcher = Inverted(compiled) if invert_match else compiled
    with session.process(process) as opened:
        matches = _print(session, opened, selector, matcher, printer, max_count)
    if not matches:
        click.get_current_context().exit(NOTHING_FOUND)


def _print(
    session: CliSession,
    opened: Process,
    selector: str,
    matcher: Matcher,
    printer: GrepPrinter | None,
    max_count: int | None,
) -> int:
    """Print matching lines as they are found, or only their number; return the number."""
    from fdstore.cli.found_lines import count_fields
    from fdstore.store.contents.searching import print_matches
    from fdstore.text.pattern import HitCount
    from fdstore.text.selection import parse_request

    request = parse_request(selector)
    hits = HitCount() if printer is None and session.as_json else None
    operation = print_matches(
        opened.handle, request.fd, request.part, matcher, printer, output.escaped_content, hits
    )
    counted = run_on(opened, operation)
    matches = min(counted.matches, max_count or counted.matches)
    if hits is not None:
        found: dict[str, object] = {"fd": counted.fd, "matches": matches}
        if matches == counted.matches:  # else it is not known how many are in the first lines
            found |= count_fields(hits)
        output.document(found | {"lines_searched": counted.lines_searched})
    elif printer is None:
        output.line(str(matches))
    return matches
