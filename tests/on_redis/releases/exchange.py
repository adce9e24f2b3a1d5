"""Write a small store and read it again, with the public API alone: both run with any release of fdstore.

    python exchange.py write URL       writes it, into new trees
    python exchange.py read URL        prints as JSON what is read of it
    python exchange.py continue URL    continues it as another process would
    python exchange.py stream URL      writes a stream, in two parts with a line of stdin between
    python exchange.py follow URL      prints that stream until its end

Imports nothing of this repository, which another release may not have.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

import fdstore

LINES = "".join(f"line {number}: é {'x' * (number % 90)}\n" for number in range(1, 501))
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452") + bytes(range(256)) * 30


def write(store: Any) -> None:
    """Write texts of several sizes, bytes, names, a stream, shared and copied contents, an ended process."""
    proc = store.process("release")
    proc.create("")
    proc.create("short, one line", source="note")
    proc.create(LINES, page_size=100)
    proc.create("z" * 5000)
    proc.create(PNG, media_type="image/png")
    proc.extract("fd:3#L100-120")
    proc.put("plan.md", "first")
    proc.put("plan.md", "second\n")
    with proc.open_stream("ended") as writer:
        writer.write("a\nb\n" * 3000)
    child = proc.child(share=["fd:3", "name:plan.md"])
    child.create("of the child")
    proc.fork()
    proc.child().end()


def read(store: Any) -> dict[str, Any]:
    """Return what the store holds, as readers see it."""
    found: dict[str, Any] = {}
    for name in ("release", "release.1", "release.2"):
        proc = store.process(name)
        found[name] = {
            each.fd: [
                *(each.state, each.kind, each.chars, each.bytes, each.lines, each.pages),
                _digest(proc, each),
            ]
            for each in proc.list()
        }
    proc = store.process("release")
    found["lines"] = proc.read("fd:3#L432-434").text
    found["chars"] = proc.read("fd:3#C20000-20010").text
    found["page"] = proc.read("fd:3", start=7).text
    found["hits"] = [(hit.line, hit.text) for hit in proc.search("fd:3", "line 4[0-9]9:").hits]
    found["name"] = proc.read("name:plan.md").text
    origin = proc.stat("fd:6").origin
    found["origin"] = [origin.fd, origin.chars, origin.lines]
    found["states"] = sorted((each.id, each.state) for each in store.processes())
    return found


def _digest(proc: Any, content: Any) -> str:
    data: bytes = proc.read_bytes(content.fd)
    return hashlib.sha256(data).hexdigest()[:16]


def go_on(store: Any) -> None:
    """Add to each tree, share, rename, close and end."""
    proc = store.process("release")
    assert int(proc.create("later\n").fd.removeprefix("fd:")) > 9
    grandchild = store.process("release.1").child(share=["fd:3"])
    grandchild.put("plan.md", "third")
    proc.rename("plan.md", "old.md")
    store.process("release.1").close("name:plan.md")
    proc.close("fd:3")
    assert store.process("release.2").read("fd:3#L2").text.startswith("line 2:")
    assert proc.read("name:old.md").text == "second\n"
    store.process("release.2").end()


def main(verb: str, url: str) -> None:
    with fdstore.connect(url) as store:
        if verb == "write":
            write(store)
        elif verb == "continue":
            go_on(store)
        elif verb == "stream":
            with store.process("live").open_stream("live") as writer:
                writer.write("begun\n")
                writer.flush()
                print("open", flush=True)
                sys.stdin.readline()
                writer.write("done\n")
        elif verb == "follow":
            for piece in store.process("live").follow("fd:1"):
                print(piece, end="", flush=True)
        else:
            print(json.dumps(read(store)))


if __name__ == "__main__":
    main(*sys.argv[1:])
