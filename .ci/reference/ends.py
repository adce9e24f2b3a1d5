"""Tables of the reasons for which processes and streams end."""

from __future__ import annotations

from fdstore.model.ends import REASONS, WORKER_LOST, Reason, broken_as
from reference import markdown


def _text(reason: Reason) -> str:
    """Return the text of a reason of a pipeline, with a letter for its number."""
    return reason.text("n") if reason.state == "exited" else reason.name


def _broken(reason: Reason) -> str:
    return f"`broken` (`{broken_as(reason.state, _text(reason))}`)"


def _process(reason: Reason) -> str:
    exit_code = "" if reason.exit_code is None else f", exit code {reason.exit_code}"
    return f"`{reason.state}` (`{_text(reason)}`){exit_code}"


def pipeline_ends() -> str:
    """Return the table of what ends a pipeline, and how its process and outputs end then."""
    rows = [(each.when, _process(each), _broken(each)) for each in REASONS if "pipelines" in each.of]
    return markdown.table(("what happens", "the process", "its outputs"), rows)


def stream_reasons() -> str:
    """Return the table of the reasons for which fdstore breaks streams."""
    own = [each for each in REASONS if "streams" in each.of]
    others = {f"`{broken_as(each.state, _text(each))}`": None for each in REASONS if "pipelines" in each.of}
    rest = ", ".join(name for name in others if name not in {f"`{each.name}`" for each in own})
    rows = [(f"`{each.name}`", each.when) for each in own]
    return markdown.table(("reason", "when"), [*rows, (rest, "a [pipeline](pipelines.md) wrote it")])


def failures() -> str:
    """Return the table of the reasons for which processes fail, and what to do."""
    rows = [(f"`{each.name}`", ", ".join(each.of), each.when, each.to_do) for each in REASONS if each.to_do]
    return markdown.table(("reason", "of", "when", "do"), rows)


def worker_lost() -> tuple[str, str]:
    """Return how a pipeline whose worker is lost ends, and its outputs."""
    return _process(WORKER_LOST), _broken(WORKER_LOST)
