"""What pages written by hand state of the code: the name of each statement, and its text.

A page has it between `<!-- NAME -->` and `<!-- / -->`, and `make generate` writes it there. So a number or a
table stands in the code alone, and a change of it is made in one place. Names end with the unit of a number.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fdstore.agents.loop import offering
from fdstore.agents.loop.program_file import ModelSection
from fdstore.agents.loop.program_limits import Limits
from fdstore.agents.runtime import claim
from fdstore.client import write_buffer
from fdstore.files.documents import convert
from fdstore.files.unpacking import UnpackLimits
from fdstore.hosts.hooks.install.launch import Launch
from fdstore.hosts.hooks.install.toml_config import with_hook
from fdstore.hosts.mcp import questions, resources, toolsets, updates
from fdstore.http import connections
from fdstore.inspector.web import descriptor_data, diff, readable_text, rendering, timeline_spans
from fdstore.model.fields import said_of
from fdstore.model.pipeline_limits import PipelineLimits
from fdstore.model.records import TreeLimits
from fdstore.programs import python_call
from fdstore.results.config import DIRECT_CHARS
from fdstore.results.python_config import PythonSection
from fdstore.setup.settings import HOST_PATIENCE_S, HOST_READ_CHARS, VARIABLES, HttpLimits
from fdstore.sql import duckdb_query
from fdstore.store.content_info import MAX_GROUPS
from fdstore.store.contents import page_fields, staging
from fdstore.store.processes import leases
from fdstore.store.streams import streams
from fdstore.store.tree_limits import LIMITS
from fdstore.store.trees import ceilings
from fdstore.store.views import live, store_meter, word_search, worker_check
from fdstore.text.commands import MAX_COMMAND_BYTES, MAX_STAGES
from fdstore.text.index import GROUP_PAGES, ROW_PAGES
from fdstore.text.paging import DEFAULT_PAGE_SIZE
from fdstore.text.previews.json_shape import PART_CHARS
from fdstore.text.previews.sample import END_BYTES, WHOLE_BYTES
from fdstore.text.quantities import format_bound
from fdstore.tools.catalogue import BUILT_IN, READING_TOOLS
from fdstore.tools.clearing import ClearingConfig
from fdstore.wire import breaker, retry, server_info
from fdstore.wire.script_constants import MAX_DOUBLINGS, MAX_LOSSES_KEPT
from fdstore_workers import health, supervisor
from fdstore_workers.pipeline import poll_loop
from fdstore_workers.pipeline.command_limits import CommandLimits
from reference import ends, markdown, metrics, providers

PYTHON = PythonSection()


def spaced(number: float) -> str:
    """Return a number as pages write it.

    >>> spaced(20000), spaced(8000)
    ('20,000', '8000')
    """
    return f"{number:,.0f}" if number >= 10_000 else f"{number:g}"


def value(name: str, number: float) -> str:
    """Return the value of a limit with the unit that its name ends with.

    >>> value("stream_bytes", 1 << 30), value("wall_seconds", 3600.0), value("tree_fds", 10_000)
    ('1 GiB', '3600 s', '10,000')
    """
    if name.endswith("_bytes"):
        return format_bound(int(number))
    return spaced(number) + (" s" if name.endswith(("_s", "_seconds")) else "")


def limits_of_trees() -> str:
    return markdown.table(["limit", "default", "of", "beyond it"], _tree_rows())


def _tree_rows() -> Iterator[list[str]]:
    defaults = TreeLimits()
    for name, limit in LIMITS.items():
        if limit.used:
            default = getattr(defaults, name)
            shown = "no limit" if default is msgspec.UNSET else value(name, default)
            top = "" if limit.top == "none" else f", and at most {limit.top}"
            note = f"; {limit.note}" if limit.note else ""
            yield [f"`{name}`", shown + top, limit.of + note, limit.beyond]
    kept = f"{defaults.retention_days:g}; 0 means unlimited"
    yield ["`retention_days`", kept, "days that the tree is kept after its last use", "the tree is collected"]


def limits_of_pipelines() -> str:
    return markdown.table(["limit", "default", "set in"], _pipeline_rows())


def _pipeline_rows() -> Iterator[list[str]]:
    for kind in (PipelineLimits, CommandLimits):
        for name, said in said_of(kind, msgspec.Meta).items():
            if said.description:
                place = f"`[limits] {name}`" if kind is PipelineLimits else "fixed"
                what = said.description.removeprefix("The most ").rstrip(".")
                yield [what, value(name, getattr(kind(), name)), place]
    yield ["stages of a pipeline", str(MAX_STAGES), "fixed"]
    yield ["length of a command", f"{(MAX_COMMAND_BYTES + 1) >> 10} KiB", "fixed"]


def settings_of(section: str) -> str:
    return markdown.table(["variable", "default", "meaning"], _variable_rows(section))


def _variable_rows(section: str) -> Iterator[list[str]]:
    for kind, variables in VARIABLES.items():
        for field in msgspec.structs.fields(kind):
            said = variables[field.name]
            if said.section == section:
                default = f"`{field.default}`" if field.default else "none"
                yield [f"`{said.name}`", said.without or default, said.meaning]


def reading_tools() -> str:
    *others, last = (f"`{name}`" for name in READING_TOOLS)
    return f"{', '.join(others)} and {last}"


def codex_config() -> str:
    """Return what `fdstore hook install codex` adds to an empty configuration, as it shows it."""
    home = {"FDSTORE_DATA_DIR": "/home/ann/.local/share/fdstore"}
    added = with_hook("", Launch(python="/opt/fdstore/bin/python", environment=home))
    return markdown.fence("".join(f"+{line}\n" for line in added.splitlines()))


def tools_of_mcp() -> dict[str, str]:
    """Return the tools that each permission of MCP offers."""
    found: dict[str, str] = {}
    for name, tool in BUILT_IN.items():
        if tool.permission:
            found[f"mcp_{tool.permission}"] = f"{found.get(f'mcp_{tool.permission}', '')} `{name}`".lstrip()
    return found


NUMBERS: dict[str, float] = {
    "backoff_s": breaker.PAUSES_S[-1],
    "blob_mib": resources.MAX_BLOB_BYTES >> 20,
    "clear_at_tokens": ClearingConfig().clear_at_tokens,
    "compared_mb": diff.MAX_BYTES / 1e6,
    "count_s": descriptor_data.COUNT_S,
    "deadline_s": retry.DEADLINE_S,
    "default_page_chars": DEFAULT_PAGE_SIZE,
    "diff_rows": diff.MAX_ROWS,
    "direct_chars": DIRECT_CHARS,
    "folded_chars": rendering.MAX_CHARS,
    "frozen_s": supervisor.FROZEN_AFTER_S,
    "give_up_s": ModelSection(name="m").give_up_seconds,
    "host_patience_s": HOST_PATIENCE_S,
    "host_read_chars": HOST_READ_CHARS,
    "http_connections": HttpLimits().connections,
    "http_progress_kib": connections.PROGRESS_BYTES >> 10,
    "http_request_s": HttpLimits().request_s,
    "index_group_pages": GROUP_PAGES,
    "index_groups_kept": MAX_GROUPS,
    "index_pages_kept": MAX_GROUPS * GROUP_PAGES,
    "index_row_pages": ROW_PAGES,
    "json_part_chars": PART_CHARS,
    "lease_s": leases.LEASE_S,
    "long_prompt_tokens": offering.LONG_PROMPT_TOKENS,
    "lost_call_s": supervisor.LOST_CALL_S,
    "lost_lease_s": leases.LEASE_S / 2,
    "max_turns": Limits().max_turns,
    "mcp_programs_at_once": toolsets.PROGRAMS_AT_ONCE,
    "mcp_question_chars": questions.MAX_SHOWN_CHARS,
    "mcp_updates_every_s": updates.EVERY_S,
    "nearly_full_percent": server_info.NEARLY_FULL * 100,
    "one_trip_kb": staging.SEND_BYTES / 1000,
    "pipeline_grace_s": poll_loop.GRACE_S,
    "pretty_chars": readable_text.MAX_CHARS["pretty"],
    "python_calls": PYTHON.calls,
    "python_code_kib": python_call.MAX_CODE_BYTES >> 10,
    "python_memory_mib": PYTHON.memory_bytes >> 20,
    "python_output_mb": PYTHON.max_output / 1e6,
    "python_seconds": PYTHON.seconds,
    "rendered_chars": readable_text.MAX_CHARS["rendered"],
    "renew_every_s": leases.RENEW_EVERY_S,
    "retention_days": TreeLimits().retention_days,
    "rounded_up_bytes": page_fields.MAX_ROUNDED_UP,
    "sample_end_kb": END_BYTES / 1000,
    "sample_whole_mb": WHOLE_BYTES / 1e6,
    "searched_trees": word_search.MAX_TREES,
    "sql_memory_mb": duckdb_query.MEMORY_MB,
    "sql_object_mib": duckdb_query.OBJECT_BYTES >> 20,
    "sql_spilled_gb": duckdb_query.SPILLED_GB,
    "sql_threads": duckdb_query.THREADS,
    "sql_timeout_s": int(duckdb_query.TIMEOUT_S),
    "staging_minutes": staging.STAGING_TTL_S / 60,
    "stop_grace_s": claim.STOP_GRACE_S,
    "store_meter_s": store_meter.PATIENCE_S,
    "stream_lease_s": streams.LEASE_S,
    "stuck_minutes": health.STUCK_AFTER_S / 60,
    "sweep_every_s": leases.SWEEP_EVERY_S,
    "takeover_s": leases.LEASE_S + leases.LEASE_S / 2,
    "text_overhead_percent": round((ceilings.TEXT_OVERHEAD - 1) * 100),
    "timeline_bars": timeline_spans.MAX_SPANS,
    "top_processes": live.MAX_PROCESSES,
    "top_streams": live.MAX_STREAMS,
    "top_trees": live.MAX_TREES,
    "tree_export_gib": TreeLimits().tree_export_bytes >> 30,
    "tree_fds": TreeLimits().tree_fds,
    "tree_model_calls_per_day": TreeLimits().tree_model_calls_per_day,
    "tree_tokens_per_day": TreeLimits().tree_tokens_per_day,
    "document_memory_gib": convert.MEMORY_BYTES >> 30,
    "document_s": convert.CPU_S,
    "unpack_gib": UnpackLimits().bytes >> 30,
    "unpack_members": UnpackLimits().members,
    "unpack_ratio": UnpackLimits().ratio,
    "unsplit_page_bytes": page_fields.MIN_SPLIT,
    "max_losses_kept": MAX_LOSSES_KEPT,
    "wake_again_s": leases.WAKE_AGAIN_S,
    "wake_at_last_s": leases.WAKE_AGAIN_S * 2**MAX_DOUBLINGS,
    "wall_seconds": Limits().wall_seconds,
    "worker_patience_s": worker_check.PATIENCE_S,
    "write_buffer_chars": write_buffer.ENOUGH_CHARS,
    "write_buffer_ms": write_buffer.MAX_AGE_S * 1000,
}
"""Numbers in sentences and tables, by their names."""

STATEMENTS: dict[str, str] = {name: spaced(number) for name, number in NUMBERS.items()} | {
    "codex_config": codex_config(),
    "failures": ends.failures(),
    "limits_of_pipelines": limits_of_pipelines(),
    "limits_of_trees": limits_of_trees(),
    "metrics": metrics.served(),
    "metrics_of_opentelemetry": metrics.sent(),
    "model_exports": providers.exports(),
    "model_variables": providers.variables(),
    "pipeline_ends": ends.pipeline_ends(),
    "reading_tools": reading_tools(),
    "scripted_variables": providers.scripted(),
    "stream_reasons": ends.stream_reasons(),
    "worker_lost": ends.worker_lost()[0],
    "worker_lost_outputs": ends.worker_lost()[1],
    **tools_of_mcp(),
    **{f"settings_of_{each}": settings_of(each) for each in ("store", "models", "hosts", "http", "output")},
}
