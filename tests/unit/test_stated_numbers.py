"""Numbers that pages state are those of the code: each sentence is made from it, and must be in its page.

A number of a page that comes from the code gets a row here, or the page is generated.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fdstore.agents.runtime import claim
from fdstore.client import write_buffer
from fdstore.hosts.mcp import resources, toolsets, updates
from fdstore.model.pipeline_limits import PipelineLimits
from fdstore.model.records import TreeLimits
from fdstore.results.config import DIRECT_CHARS
from fdstore.results.python_config import PythonSection
from fdstore.setup.settings import HOST_PATIENCE_S, HOST_READ_CHARS, HttpLimits
from fdstore.store.content_info import MAX_GROUPS
from fdstore.store.contents import page_fields, staging
from fdstore.store.processes import leases
from fdstore.store.streams import streams
from fdstore.store.views import worker_check
from fdstore.text.index import GROUP_PAGES, ROW_PAGES
from fdstore.text.previews.json_shape import PART_CHARS
from fdstore.text.previews.sample import END_BYTES, WHOLE_BYTES
from fdstore_workers.pipeline import poll_loop
from fdstore_workers.pipeline.command_limits import CommandLimits

ROOT = Path(__file__).parents[2]
TREE, COMMAND, PIPELINE, HTTP = TreeLimits(), CommandLimits(), PipelineLimits(), HttpLimits()
PYTHON = PythonSection()
MIB, GIB = 1 << 20, 1 << 30
WORDS = {5: "five", 10: "ten", 15: "fifteen", 20: "twenty", 30: "thirty"}
TAKEOVER_S = leases.LEASE_S + leases.LEASE_S / 2
"""A lost lease, and the time that its holder gets before it is judged."""


def spaced(number: float) -> str:
    """Return a number as pages write it.

    >>> spaced(20000), spaced(8000)
    ('20 000', '8000')
    """
    return f"{number:,.0f}".replace(",", " ") if number >= 10_000 else f"{number:g}"


STATED = {
    "docs/how-to/costs.md": (
        f"of up to {WHOLE_BYTES / 1e6:g} MB is looked at whole",
        f"of a longer one {END_BYTES // 1000} kB of either end",
        f"of JSON the first {spaced(PART_CHARS)} characters",
    ),
    "docs/how-to/limits.md": (
        f"{TREE.tree_depth} generations, {TREE.tree_live} not ended, {TREE.tree_processes} in total",
        f"{spaced(TREE.tree_fds)} contents",
        f"{TREE.tree_bytes // GIB} GiB of text",
        f"{TREE.tree_export_bytes // GIB} GiB written by `fd_to_file`",
        f"{spaced(TREE.tree_model_calls_per_day)} answers of models",
        f"| `tree_tokens_per_day` | {spaced(TREE.tree_tokens_per_day)},",
        f"| `retention_days` | {TREE.retention_days:g};",
    ),
    "docs/tutorial-workers.md": (f"by a lease of {WORDS[leases.LEASE_S]} seconds",),
    "deploy/runbook.md": (
        f"`lease_until` is at most {leases.LEASE_S:g} s ahead",
        f"for up to {TAKEOVER_S:g} s: {leases.LEASE_S:g} s until the lease is over",
    ),
    "docs/explanation/exactly-once.md": (
        f"a thread of its own renews every {leases.RENEW_EVERY_S:g} s",
        f"runs every {leases.SWEEP_EVERY_S:g} s",
    ),
    "docs/explanation/loss.md": (
        f"another worker continues, within {TAKEOVER_S:g} s",
        f"also this is judged after {leases.LEASE_S / 2:g} s",
        f"for up to {claim.STOP_GRACE_S:g} s, and gives the agent back",
        f"its lease of {streams.LEASE_S:g} s",
        f"expire within {staging.STAGING_TTL_S // 60} minutes",
        f"its holder had {leases.LEASE_S / 2:g} s to renew it",
    ),
    "docs/explanation/pages-and-index.md": (
        f"one field for each group of {GROUP_PAGES} pages",
        f"a row for each {ROW_PAGES} pages",
        f"for {MAX_GROUPS} groups of a content ({spaced(MAX_GROUPS * GROUP_PAGES)} pages",
        f"by more than {page_fields.MAX_ROUNDED_UP} bytes",
        f"Pages of up to {page_fields.MIN_SPLIT} bytes",
    ),
    "docs/how-to/deploying.md": (f"says so after {worker_check.PATIENCE_S:g} s",),
    "docs/how-to/gateway.md": (f"more than {DIRECT_CHARS} characters (`--max-direct-output-chars N`)",),
    "docs/how-to/codex.md": (
        f"more than {DIRECT_CHARS} characters",
        f"does not answer within {HOST_PATIENCE_S:g} s",
    ),
    "docs/how-to/gemini-cli.md": (f"longer than {DIRECT_CHARS} characters",),
    "docs/how-to/mcp.md": (
        f"at most {HOST_READ_CHARS:,} characters (`--max-read-chars`)",
        f"up to {HOST_READ_CHARS:,} characters or {resources.MAX_BLOB_BYTES // MIB} MiB of bytes",
        f"at most every {updates.EVERY_S:g} s",
        f"must arrive within {HTTP.request_s:g} s; there are at most {HTTP.connections} connections",
        f"One call has {PYTHON.seconds:g} s of processor time, {PYTHON.memory_bytes // MIB} MiB, "
        f"{spaced(PYTHON.calls)} calls and {PYTHON.max_output // 10**6} MB of output",
        f"those of at most {toolsets.PROGRAMS_AT_ONCE} processes",
    ),
    "docs/how-to/own-loop.md": (f"more than {DIRECT_CHARS} characters",),
    "docs/how-to/pipelines.md": (
        f"after {poll_loop.GRACE_S:g} s SIGKILL",
        f"| bytes of each output | {PIPELINE.stream_bytes // GIB} GiB |",
        f"| time without a byte read or written | {PIPELINE.stream_idle_seconds:g} s |",
        f"| time of the run | {PIPELINE.wall_seconds:g} s |",
        f"{COMMAND.cpu_s} s, {COMMAND.memory_bytes // GIB} GiB, {COMMAND.file_bytes // MIB} MiB, "
        f"{COMMAND.open_files} |",
        f"| system processes of a stage (in a sandbox) | {COMMAND.processes} |",
        f"{COMMAND.scratch_bytes // MIB} MiB and {COMMAND.scratch_inodes} files each",
    ),
    "docs/how-to/security.md": (f"A client has {HTTP.request_s:g} s to send its whole request",),
    "docs/how-to/streams.md": (
        f"stored {write_buffer.MAX_AGE_S * 1000:g} ms later, or",
        f"when {spaced(write_buffer.ENOUGH_CHARS)} characters are buffered",
        f"its lease of {streams.LEASE_S:g} s",
    ),
}


@pytest.mark.parametrize("page", STATED)
def test_a_page_states_the_numbers_of_the_code(page: str) -> None:
    text = re.sub(r"\s+", " ", (ROOT / page).read_text("utf-8"))

    assert [sentence for sentence in STATED[page] if sentence not in text] == []
