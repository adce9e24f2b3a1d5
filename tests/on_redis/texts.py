"""Texts of all kinds: empty, long, unusual."""

from __future__ import annotations

LOG = "".join(f"{n:04d} {'x' * (n % 90)}\n" for n in range(1, 3001))
UNUSUAL = (
    "\ufeffBOM\r\nCR\r\0NUL\u2028sep\x85nel\n\n漢字 \N{GRINNING FACE}\u200d\N{ROCKET}\nno newline at its end"
)
TEXTS = {
    "empty": "",
    "one": "x",
    "log": LOG,
    "unusual": UNUSUAL,
    "newlines": "\n" * 700,
    "long line": "é" * 9000,
}
