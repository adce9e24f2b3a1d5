"""Metadata that depends on where the repository is published.

The address is given to the build, and is not in the repository:

    FDSTORE_REPOSITORY_URL=https://HOST/OWNER/NAME python -m build

Then the package has project URLs, and the relative links of its README become absolute, in the form of
GitHub: URL/blob/vVERSION/PATH. Without it, relative links become plain text and pictures with a relative
path are left out, since both would be dead on the page of an index. A wheel that is built of an sdist has
the metadata of the sdist.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "FDSTORE_REPOSITORY_URL"

FENCED = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?://|mailto:|#)(?P<path>[^)\s]+)\)")


def long_description(readme: str, repository: str | None, version: str) -> str:
    """Return the README as an index shows it.

    >>> long_description("[a](docs/a.md) ![b](b.png) [c](#c)", None, "1.0")
    'a  [c](#c)'
    >>> long_description("[a](docs/a.md) ![b](b.png) [c](#c)", "https://example.org/x", "1.0")
    '[a](https://example.org/x/blob/v1.0/docs/a.md) ![b](https://example.org/x/raw/v1.0/b.png) [c](#c)'
    """

    def rewrite(found: re.Match[str]) -> str:
        picture, text, path = found["picture"], found["text"], found["path"]
        if repository is None:
            return "" if picture else text
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/v{version}/{path})"

    parts = FENCED.split(readme)
    parts[::2] = [LINK.sub(rewrite, part) for part in parts[::2]]
    return "".join(parts)


class PublishedMetadata(MetadataHookInterface):
    """Sets `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        repository = os.environ.get(VARIABLE, "").rstrip("/") or None
        version = metadata["version"]
        readme = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": long_description(readme, repository, version),
        }
        metadata["urls"] = {}
        if repository:
            at = f"{repository}/blob/v{version}"
            metadata["urls"] = {
                "Homepage": repository,
                "Documentation": f"{at}/docs/index.md",
                "Changelog": f"{at}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
