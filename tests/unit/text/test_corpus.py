"""Real texts are described as what they are: see corpus/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from fdstore.text.media_types import is_binary, media_type_of
from fdstore.text.previews import preview_of, sample_text

FILES = sorted((Path(__file__).parent / "corpus").glob("*/*.txt"))
TEXT_TYPES = ("text/", "application/json", "application/xml", "application/jsonl", "image/svg+xml")


def test_the_corpus_has_two_hundred_texts() -> None:
    assert len(FILES) >= 200


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_real_text_is_of_its_kind(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()

    found = preview_of(sample_text(text), 2000)

    assert (found.kind if found else "plain") == path.parent.name
    assert not is_binary(text.encode())
    assert media_type_of("text", path.stem, text.encode()[:12]).startswith(TEXT_TYPES)
