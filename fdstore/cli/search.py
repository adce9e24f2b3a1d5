"""The verb that finds lines: search."""

from __future__ import annotations

import click

from fdstore.cli import output
from fdstore.cli.session import Session, raw_option, verb

NOTHING_FOUND = 1
"""The exit code of grep for it."""


@verb
@click.argument("process", metavar="PROC")
@click.argument("selector", metavar="SELECTOR")
@click.argument("pattern", metavar="PATTERN")
@click.option("-C", "--context", type=int, default=0, metavar="N", help="Lines around each hit, to 100.")
@click.option("-i", "--ignore-case", is_flag=True, help="Upper and lower case are the same.")
@click.option("-m", "--max-matches", type=int, metavar="N", help="Lines to print [default: 10000, the most]")
@raw_option
def search(
    session: Session,
    process: str,
    selector: str,
    pattern: str,
    context: int,
    ignore_case: bool,
    max_matches: int | None,
    raw: bool,
) -> None:
    """Print the lines that match PATTERN, as `grep -n` does. The exit code is 1 if there is none.

    PATTERN has the syntax of RE2: no look-around and no back-references, and in return no pattern
    takes longer than the text is long. Of a line longer than 2000 characters the part around the
    match is printed.

    \b
    fdstore search triage fd:1 'ERROR (\\d+)' -C 2
    fdstore search triage fd:1#L1000-2000 -i timeout
    """
    from fdstore.render import grep_lines
    from fdstore.text.hits import KEPT_LINE_CHARS
    from fdstore.text.search import MAX_MATCHES

    with session.process(process) as opened:
        result = opened.search(
            selector,
            pattern,
            context=context,
            max_matches=MAX_MATCHES if max_matches is None else max_matches,
            ignore_case=ignore_case,
        )
    if session.as_json:
        output.document(result)
    else:
        for line in grep_lines(result.hits, KEPT_LINE_CHARS):
            output.content(f"{line}\n".encode(), raw=raw)
        if result.shown < result.matches:
            # on a pipe too: a list that ends silently would be taken for all there is
            output.say(f"fdstore: {result.shown} of {result.matches} matching lines shown")
    if not result.matches:
        click.get_current_context().exit(NOTHING_FOUND)
