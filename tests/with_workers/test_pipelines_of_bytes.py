"""Pipelines of bytes on real worker processes: any byte goes in, and what is not text comes out as bytes."""

from __future__ import annotations

import gzip

from tests.waiting import wait_until
from tests.with_workers.pipe_bench import Bench

LINES = "".join(f"line {number} of 漢字\n" for number in range(30_000))
ANY = bytes(range(256)) * 3000


def test_gzip_unpacks_a_stored_archive_into_text(bench: Bench) -> None:
    packed = bench.proc.create(gzip.compress(LINES.encode())).fd

    ended = bench.run("gzip -dc", "grep 9999", in_fd=packed, tee=[1])

    unpacked = bench.proc.stat(ended["tee_fds"])
    assert (unpacked.kind, unpacked.media_type, unpacked.chars) == ("text", "text/plain", len(LINES))
    assert bench.text(ended["tee_fds"]) == LINES
    assert bench.text(ended["fd"]) == "line 9999 of 漢字\nline 19999 of 漢字\nline 29999 of 漢字\n"
    assert bench.text(ended["stderr_fd"]) == ""


def test_gzip_packs_a_text_into_bytes_that_the_next_pipeline_unpacks(bench: Bench) -> None:
    given = bench.proc.create(LINES).fd

    packed = bench.run("cat", "gzip -c", in_fd=given, tee=[1, 2])
    unpacked = bench.run("gzip -dc", in_fd=packed["fd"])

    d = bench.proc.stat(packed["fd"])
    assert (d.state, d.kind, d.media_type) == ("sealed", "bytes", "application/octet-stream")
    assert (d.exit_code, d.chain, d.page_size) == (0, "0,0", 65_536)
    of_text, of_bytes = packed["tee_fds"].split()
    assert bench.text(of_text) == bench.text(unpacked["fd"]) == LINES
    found = bench.proc.read_bytes(packed["fd"])
    assert gzip.decompress(found) == LINES.encode()
    assert bench.proc.read_bytes(of_bytes) == found
    assert bench.proc.read(unpacked["fd"]).chain in (None, "0,0 0")


def test_bytes_pass_byte_for_byte_and_keep_the_type_of_a_picture(bench: Bench) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + ANY
    given = bench.proc.create(picture).fd

    ended = bench.run("cat", "cat", in_fd=given)

    assert bench.proc.read_bytes(ended["fd"]) == picture
    assert bench.proc.stat(ended["fd"]).media_type == "image/png"
    assert bench.show("read_fd", fd=ended["fd"], mode="line")["type"] == "not_text"


def test_a_pipeline_reads_a_stream_of_bytes_that_is_still_written(bench: Bench) -> None:
    out = bench.proc.open_stream(source="an upload")
    made = bench.pipe("cat", in_fd=out.fd)
    out.write(ANY[:100_000])
    out.flush()
    wait_until(lambda: bench.proc.stat(made["fd"]).bytes == 100_000)
    out.write(ANY[100_000:])
    out.end()

    ended = bench.wait(made["process"])

    assert (ended["state"], ended["exit_code"]) == ("exited", "0")
    assert bench.proc.read_bytes(made["fd"]) == ANY
