"""Templates to HTML. Every value is escaped, and its control characters are shown, before it is in a
page.

Texts come from models, tools and users of the store. `show` runs on each value that a template writes,
so no template can forget it; Jinja then escapes the result for HTML.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any
from urllib.parse import quote

import msgspec
from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from fdstore.errors import InvalidArgument
from fdstore.inspector.reading.narrate import narrate
from fdstore.inspector.reading.result_card import make_cards
from fdstore.inspector.web.context_growth import line_of
from fdstore.inspector.web.links import LINKS
from fdstore.inspector.web.markdown import markdown
from fdstore.inspector.web.pane import axis_of_steps, box_of, hint_of, in_rows, moves_from, title_of
from fdstore.inspector.web.timeline import axis_of, zoom_to
from fdstore.model.ends import in_words
from fdstore.model.lifecycle import ENDED
from fdstore.text.layout import show_controls
from fdstore.text.quantities import (
    ago,
    duration,
    format_costs,
    format_count,
    format_number,
    format_size,
    format_sums,
    moment,
    precise_duration,
    short_number,
)
from fdstore.text.selection import fd_id
from fdstore.text.surrogates import escape_surrogates

MAX_CHARS = 12_000
"""Characters of one text of a conversation that a page has."""

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"


def show(value: object) -> object:
    r"""Return a value with visible control characters; markup of templates stays as it is.

    >>> show("a\x1b[31m\u202eb")
    'a\\u{1b}[31m\\u{202e}b'
    """
    return show_controls(value) if isinstance(value, str) and not isinstance(value, Markup) else value


class CompiledTemplates(BytecodeCache):
    """The code of compiled templates, in memory: an environment made from another one, as for a page to keep,
    does not compile them again."""

    def __init__(self) -> None:
        self._codes: dict[str, tuple[str, CodeType]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        checksum, code = self._codes.get(bucket.key, ("", None))
        bucket.code = code if checksum == bucket.checksum else None

    def dump_bytecode(self, bucket: Bucket) -> None:
        if bucket.code is not None:
            self._codes[bucket.key] = (bucket.checksum, bucket.code)


@cache
def page_templates() -> Environment:
    """Return the environment of all templates, which compiles each on its first use."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=show,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=CompiledTemplates(),
    )
    environment.filters |= {
        "size": format_size,
        "ago": when_shown(ago),
        "duration": precise_duration,
        "moment": when_shown(moment),
        "clock": when_shown(clock),
        "day": when_shown(lambda at_s: moment(at_s)[:10]),
        "costs": format_costs,
        "sums": format_sums,
        "number": format_number,
        "short": short_number,
        "segment": lambda text: quote(text, safe=""),
        "fd_of": fd_of,
        "clip": clip,
        "typed": typed,
        "pretty": pretty,
        "markdown": markdown,
        "cards": make_cards,
        "narrate": narrate,
        "title_of": title_of,
        "hint_of": hint_of,
        "json": lambda value: msgspec.json.encode(value).decode("utf-8", "replace"),
        "uptime": duration,
        "with_code": with_code,
        "in_words": in_words,
        "one_line": lambda text: show_controls(text, keep=""),
    }
    environment.globals |= {
        "count": format_count,
        "asset": asset,
        "ENDED": ENDED,
        "links": LINKS,
        "axis_of": axis_of,
        "zoom_to": zoom_to,
        "line_of": line_of,
        "axis_of_steps": axis_of_steps,
        "box_of": box_of,
        "in_rows": in_rows,
        "moves_from": moves_from,
    }
    return environment


def with_code(text: str) -> Markup:
    """Return a text of ours as HTML, the commands between backticks as code.

    >>> with_code("start one: `fdstore up` & wait")
    Markup('start one: <code>fdstore up</code> &amp; wait')
    """
    parts = [escape(show_controls(part)) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part for number, part in enumerate(parts)
    )


def fd_of(text: str) -> str:
    """Return the descriptor that an argument of a tool names, without its selector; "" if it names none.

    >>> fd_of("fd:3#L1-9"), fd_of("ref:plan"), fd_of("see fd:3"), fd_of("fd:x")
    ('fd:3', 'ref:plan', '', '')
    """
    fd = text.partition("#")[0]
    with suppress(InvalidArgument):
        return fd_id(fd) if fd.startswith(("fd:", "ref:")) else ""
    return ""


def typed(text: str) -> Markup:
    r"""Return what a person has typed into a form, for the same form again: exactly.

    >>> typed("<\u200f>")
    Markup('&lt;\u200f&gt;')
    """
    return escape(escape_surrogates(text))


def pretty(value: object) -> str:
    """Return a value as JSON with line breaks, at most `MAX_CHARS` of it."""
    return escape_surrogates(json.dumps(value, indent=2, ensure_ascii=False)[:MAX_CHARS])


CLIP_CHARS, CLIP_LINES = 700, 12


def clip(text: str, lines: int = CLIP_LINES) -> str:
    """Return the beginning of a text, a few lines; a text that is little longer is returned whole.

    >>> clip("a\\nb"), len(clip("a" * 5000)), clip("line\\n" * 50).count("\\n")
    ('a\\nb', 700, 11)
    """
    chars = CLIP_CHARS * lines // CLIP_LINES
    if len(text) <= chars * 1.3 and text.count("\n") < lines * 1.3:
        return text
    return "\n".join(text[:chars].split("\n", lines)[:lines])


def when_shown(form: Callable[..., str]) -> Callable[..., str]:
    """Return a format of times that has a text for those of damaged records, too."""

    def shown(at_s: float, *more: float) -> str:
        try:
            return form(at_s, *more)
        except (ValueError, OverflowError, OSError):
            return "an impossible time"

    return shown


def clock(at_s: float) -> str:
    """Return the time of day with milliseconds, in UTC.

    >>> clock(0.25)
    '00:00:00.250'
    """
    return datetime.fromtimestamp(at_s, UTC).strftime("%H:%M:%S.%f")[:-3]


@cache
def asset(name: str) -> str:
    """Return the URL of a static file; it changes with the file, so browsers may keep it."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?{digest}"


def encode(html: str) -> bytes:
    """Return HTML as UTF-8; lone surrogates, which damaged records may hold, have none."""
    return html.encode("utf-8", "backslashreplace")


def render(environment: Environment, template: str, **values: Any) -> str:
    """Return a whole page."""
    return environment.get_template(template).render(values)
