"""Two threads that decode a msgspec type for the first time concurrently crash the interpreter, so every type
is prepared before threads start, or under the one lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.model.msgspec_types import without_absent
from tests.waiting import PATIENCE_S

MEETS_TYPES = """
import sys
from pathlib import Path

import msgspec

import fdstore_workers.worker
from fdstore.agents.loop.program_loader import Bundle, Program, load
from fdstore.errors import InvalidArgument
from fdstore.model import msgspec_types
from fdstore.model.records import TreeLimits
from fdstore.model.lifecycle import ProcessState
from fdstore.store.content_info import CONTENT, descriptor_of
from fdstore.tools.process_task import PipeTask, encode_task
from fdstore.tools.built_in.fd_to_file import Plan
from fdstore.tools.catalogue import BUILT_IN
from fdstore.tools.arguments import convert, schema_of
from fdstore.tools.functions.parameters import parameters_of

met = []

def watch(frame, event, argument):
    # msgspec calls this function of its own once for each type that it has not met before: that is safe under
    # the lock. Two functions in Python do so too, at any time.
    if event == "call" and frame.f_code.co_name == "get_class_annotations":
        by_python = frame.f_back.f_code.co_name in ("_get_class_annotations", "fields")
        if not by_python and not msgspec_types._lock.locked():
            met.append(frame.f_locals["obj"].__name__)

class Unknown(msgspec.Struct):
    field: int

class Offered(msgspec.Struct):
    field: int

class Given(msgspec.Struct):
    field: int

def offered(given: Given) -> str:
    return ""

file = Path(sys.argv[1], "p.toml")
file.write_text('[model]\\nname = "m"\\n[prompt]\\nsystem = "s"\\n[limits]\\ntree_depth = 2\\n')
sys.setprofile(watch)
Bundle.from_json(load(file).json)
msgspec.json.decode(b"{}", type=TreeLimits)
msgspec.json.decode(encode_task(PipeTask(commands=[["ls"]], page_size=1)), type=PipeTask)
msgspec.convert("open", ProcessState)
for tool in BUILT_IN.values():
    schema_of(tool.arguments)
    try:
        convert(tool.arguments, {})
    except InvalidArgument:
        pass
schema_of(Offered)
parameters_of(offered, "offered", {})
try:
    msgspec.convert({}, Plan)
except msgspec.ValidationError:
    pass
try:
    descriptor_of("fd:1", {"state": "sealed"})
except msgspec.ValidationError:
    pass
CONTENT.decode_readable([None] * len(CONTENT.names))
msgspec.convert({"field": 1}, Unknown)
sys.setprofile(None)
print(met)
"""


@pytest.mark.thorough("it reads the whole source")
def test_every_type_that_threads_decode_is_prepared_beforehand(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEETS_TYPES, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert (done.stderr, done.stdout) == ("", "['Unknown']\n")


RACE = """
import sys
import threading

from fdstore.errors import InvalidArgument
from fdstore.store.content_info import CONTENT
from fdstore.store.processes.process_records import PROCESS
from fdstore.store.tree_facts import TREE
from fdstore.tools.arguments import convert, schema_of
from fdstore.tools.catalogue import BUILT_IN

sys.setswitchinterval(1e-6)
met = threading.Barrier(8)

def work():
    met.wait()
    for hash in (CONTENT, PROCESS, TREE.some("bytes", "fds")):
        hash.decode_readable([None] * len(hash.names), **({"id": "a"} if hash is PROCESS else {}))
    for tool in BUILT_IN.values():
        schema_of(tool.arguments)
        try:
            convert(tool.arguments, {})
        except InvalidArgument:
            pass
    done.append(True)

done = []
threads = [threading.Thread(target=work) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(len(done))
"""


def test_threads_that_meet_hashes_and_arguments_together_do_not_crash() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RACE], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )

    assert (done.stderr, done.stdout) == ("", "8\n")


class Plain(msgspec.Struct, kw_only=True):
    first: int
    set: int | None = 8
    mode: str = "a"


class Mixed(Plain, kw_only=True, rename="camel"):
    needed_too: int | None
    left_out: int | None = None
    inner_one: Plain | None = None
    unset: int | msgspec.UnsetType = msgspec.UNSET
    words: str = ""
    several: tuple[int, ...] = ()
    by_name: dict[str, int] = msgspec.field(default_factory=dict)
    full: dict[str, int] = msgspec.field(default_factory=lambda: {"a": 1})


@given(st.data())
def test_what_is_absent_by_default_is_left_out_and_comes_back(data: st.DataObject) -> None:
    plain = st.builds(Plain, first=st.integers(0, 9), set=st.none() | st.integers(0, 9))
    numbers = st.none() | st.integers(0, 9)
    made = data.draw(
        st.builds(
            Mixed,
            first=st.integers(0, 9),
            set=numbers,
            needed_too=numbers,
            left_out=numbers,
            inner_one=st.none() | plain,
            unset=st.just(msgspec.UNSET) | st.integers(0, 9),
            words=st.text(max_size=2),
            several=st.lists(st.integers(), max_size=2).map(tuple),
            by_name=st.dictionaries(st.text(), st.integers(0, 1), max_size=2),
            full=st.dictionaries(st.text(), st.integers(0, 1), max_size=2),
        )
    )
    written = without_absent(made)

    assert msgspec.json.decode(msgspec.json.encode(written), type=Mixed) == made
    assert [name for name, value in written.items() if value is None] == [
        name for name, value in (("set", made.set), ("neededToo", made.needed_too)) if value is None
    ]
    assert written["full"] == made.full
    for name, value in (("words", made.words), ("several", made.several), ("byName", made.by_name)):
        assert (name in written) == bool(value)
