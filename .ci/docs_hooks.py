"""Hooks of mkdocs: links to files of the repository that are not pages.

Pages link to files beside docs/, such as `../../deploy/users.acl`. In the repository such a link opens the
file. The site does not have it, so the link becomes one to `extra.repository`, if mkdocs.yml sets that, else
the path as code.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[((?:`[^`]*`|[^\[\]`])*)\]\(([^()\s:#]+)(#[^()\s]*)?\)|`+[^`]+`+")
"""A link, or code, in which nothing is a link."""

BLOCK = re.compile(r"(^(?P<fence>```+|~~~+).*?^(?P=fence)`*~*$)", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Replace the links of one page that leave docs/, outside blocks of code."""
    repository = (config.extra or {}).get("repository")
    folder = posixpath.dirname(page.file.src_uri)
    parts = BLOCK.split(markdown)
    # split() also yields the group of the fence
    text, blocks = parts[::3], parts[1::3]
    changed = [replace_links(part, folder, repository) for part in text]
    return "".join(part for pair in zip(changed, [*blocks, ""], strict=True) for part in pair)


def replace_links(markdown: str, folder: str, repository: str | None) -> str:
    """Replace the links to files outside docs/ in a part of a page in `folder`.

    >>> replace_links("See [the users](../../deploy/users.acl).", "how-to", None)
    'See the users (`deploy/users.acl`).'
    >>> replace_links("See [`users.acl`](../../deploy/users.acl).", "how-to", "https://example.org/blob/main/")
    'See [`users.acl`](https://example.org/blob/main/deploy/users.acl).'
    >>> replace_links("See [streams](streams.md#ends).", "how-to", None)
    'See [streams](streams.md#ends).'
    >>> replace_links("Write `[users](../../deploy/users.acl)`.", "how-to", None)
    'Write `[users](../../deploy/users.acl)`.'
    """

    def replace(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[0]
        label, target, anchor = found[1], found[2], found[3] or ""
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        if path.startswith(("docs/", "/")) and path != "docs":
            return found[0]
        if repository:
            return f"[{label}]({repository.rstrip('/')}/{path}{anchor})"
        named = label.strip("`").rstrip("/")
        return f"`{path}`" if path.endswith(named) else f"{label} (`{path}`)"

    return LINK.sub(replace, markdown)
