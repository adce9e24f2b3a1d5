"""The safe part of Markdown, for what models answered: headings, emphasis, code, lists, quotes, tables.

No links, no images and no HTML: these stay as they were written. Headings begin below those of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from fdstore.text.layout import show_controls

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LEFT_OUT = ("link", "image", "autolink", "reference", "html_block", "html_inline")
HEADING_BELOW = 2


def markdown(text: str) -> Markup:
    r"""Return a text as HTML.

    >>> print(markdown("# Why\n**Disk full**, see [this](https://example.com) <b>"))
    <h3>Why</h3>
    <p><strong>Disk full</strong>, see [this](https://example.com) &lt;b&gt;</p>
    """
    return Markup(_parser().render(show_controls(text)).rstrip("\n"))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(LEFT_OUT)
    for name in ("heading_open", "heading_close"):
        parser.add_render_rule(name, _heading)
    for name in ("th_open", "td_open"):
        parser.add_render_rule(name, _cell)
    return parser


def _heading(renderer: Any, tokens: Sequence[Any], place: int, options: Any, env: Any) -> str:
    token = tokens[place]
    level = min(int(token.tag[1:]) + HEADING_BELOW, 6)
    return f"</h{level}>\n" if token.nesting < 0 else f"<h{level}>"


def _cell(renderer: Any, tokens: Sequence[Any], place: int, options: Any, env: Any) -> str:
    """A cell, aligned by a class: the policy of the pages takes no styles of elements."""
    token = tokens[place]
    side = str(token.attrs.get("style", "")).removeprefix("text-align:")
    return f'<{token.tag} class="to-{side}">' if side else f"<{token.tag}>"
