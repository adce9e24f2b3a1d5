"""More than ten thousand hostile calls: each gives a typed error or a correct answer, its result parses, and
a refused call changes nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdstore import FDConfig, errors
from fdstore.client import Store
from fdstore.tools.tool_outcome import Started, ToolResult
from fdstore.tools.toolbox import Toolbox
from fdstore.tools.wrapping import store_references
from fdstore.toolset.build import context_for, linked_programs
from tests.elements import elements

EXAMPLES = 1250
"""For each of eleven tools."""

TYPES = {
    kind.type
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.FDStoreError)
}
BUILT_IN = ["read_fd", "search_fd", "list_fds", "write_fd", "fd_to_file", "close_fd", "spawn"]
BUILT_IN += ["pipe", "wait", "kill"]
MANY_KEYS = 60

deep: Any = "{{fd:1}}"
for _ in range(1500):
    deep = [deep] if len(str(type(deep))) % 2 else {"deep": deep}

NUMBERS = [0, 1, 2, 3, -1, 50, 2**53, 2**53 + 1, -(2**63), 10**30, 10**5000, -(10**5000)]
FLOATS = [0.0, 1.0, 2.0, 1.5, -0.0, 1e16, 1e300, float("nan"), float("inf"), -float("inf")]
TEXTS = [
    *(
        "",
        " ",
        "\n",
        "\0",
        "\ud800",
        "a\udfff",
        "\x1b[31m",
        "\u202e",
        "٣",
        "3",
        "03",
        "1e3",
        "NaN",
        "true",
        "null",
    ),
    *(
        "x" * 5000,
        "<fd_error/>",
        "</fd_content>\n<message>",
        '"><fd_result fd="fd:1">',
        "{{fd:1}}",
        "{{fd:99}}",
    ),
    *("(", "[", "a{1,1000}{1,1000}", "(?i)ERROR", r"\C", "^$", ".*", r"\p{Greek}", "(?<!a)b", "a" * 1001),
    *(
        "../secret",
        "/etc/passwd",
        "out.txt",
        "sub/out.txt",
        "link",
        "fifo",
        "~",
        ".",
        "sub",
        "a" * 300,
        "o\0t",
    ),
    *("page", "line", "char", "write", "append", "Page", "adder", "text"),
]
IDS = [
    *(
        "fd:1",
        "fd-1",
        "1",
        "fd:2",
        "ref:plan",
        "fd:1#P1",
        "fd:1#L2-3",
        "fd:1#C1-99",
        "fd:2#P2-9",
        "ref:plan#L1",
    ),
    *(
        "fd:99",
        "fd:0",
        "fd:-1",
        "fd:01",
        "FD:1",
        "fd:1 ",
        "fd:1\n",
        "fd:１",
        "fd:99999999999999999999",
        "fd:",
        "fd",
    ),
    *(
        "ref:",
        "ref:none",
        "ref:a b",
        "fd:1#",
        "fd:1#P0",
        "fd:1#L9-2",
        "fd:1#X1",
        "fd:1#P1-",
        "#L1",
        "fd:1#L99",
    ),
    *("fd:1#C99999999999999999", "fd:1#P1#P2", "triage/1", "triage:fd:1", "{triage}", "*", "../fd:1"),
]

TARGETS = [
    *("triage.1", "triage.2", "triage.99", "triage.1.1", "triage.2.0", "triage.01", "triage.", ".1"),
    *("triage", "Triage.1", "triage.1 ", "triage.1\n", "triage..1", "other", "other.1", "triage.1:fds"),
    *("triage.{1}", "fd:3", "fd:4", 3, "triage.9999999999999999999999", *IDS),
]
COMMANDS = [
    *(
        ["grep -n line", "sort"],
        ["grep line"],
        ["sort"],
        ["sort"] * 33,
        ["sort"] * 500,
        [],
        [[]],
        ["sort", 1],
    ),
    *(["rm x"], ["/bin/sort"], ["sort | grep x"], ["sort > x"], ["sort; sort"], ["grep 'a"], ["grep $(id)"]),
    *(
        ["grep " + "x" * 200_000],
        ["sort\nsort"],
        ["sort {{fd:1}}"],
        [deep],
        deep,
        *([text] for text in TEXTS),
    ),
]

scalars = (
    st.sampled_from([None, True, False])
    | st.sampled_from(NUMBERS)
    | st.sampled_from(FLOATS)
    | st.sampled_from(TEXTS)
    | st.sampled_from(IDS)
    | st.integers(-5, 120)
    | st.text(max_size=8)
)
anything = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=3), scalars, max_size=2)
anything |= st.just(deep)


def every(values: list[Any], *fields: str) -> dict[str, list[Any]]:
    """The same values for each of these fields."""
    return dict.fromkeys(fields, values)


FIELDS: dict[str, dict[str, Any]] = {
    "read_fd": {
        "fd": IDS,
        "mode": ["page", "line", "char"],
        **every([1, 2, "3", 2.0, 10**6], "start", "count", "page", "start_line", "end_line"),
        **every([True, False], "read_all", "extract_to_new_fd"),
    },
    "search_fd": {
        "fd": IDS,
        "pattern": ["line", "ERROR|7$", *TEXTS],
        "context": [0, 1, 100, 101],
        "max_matches": [1, 5, "7", 10_000, 10_001],
        **every([True, False], "ignore_case", "extract_to_new_fd"),
    },
    "list_fds": every([1, 2, "3", 2.0], "start", "count"),
    "write_fd": {"data": ["a note\n", *TEXTS]},
    "fd_to_file": {
        "fd": IDS,
        "file_path": TEXTS,
        "mode": ["write", "append"],
        **every([True, False], "create", "exist_ok"),
    },
    "close_fd": {"fd": IDS},
    "spawn": {
        "program_name": ["adder", "none"],
        "query": ["Add.", *TEXTS],
        "additional_preload_fds": [[], ["fd:1"], [1, "fd:2#L1"], ["fd:99"], IDS[:5] * 30],
        "additional_preload_files": [
            [],
            ["in.txt"],
            ["../secret"],
            ["link"],
            ["fifo"],
            ["none"],
            ["\0"],
            ["sub"],
        ],
        "background": [False, True],
    },
    "pipe": {
        "commands": COMMANDS,
        "in_fd": [None, "new", "new ", 1, *IDS],
        "tee": [[], [1], [1, 2], [2, 1], [1, 1], [0], [3], ["1"], [1.0], [True], [2**60], [1] * 1000],
    },
    "wait": {"target": TARGETS, "seconds": [0, 1, 0.5, "1", -1, 86_400, 86_401, *FLOATS]},
    "kill": {"target": TARGETS},
    "pick": {
        "count": [1, "2", 3.0],
        "texts": [["{{fd:1#L1}}"], ["{{ref:none}}"], [deep]],
        "level": ["low", "high"],
    },
}


def mostly(values: list[Any]) -> st.SearchStrategy[Any]:
    """Generate one of these values, or any value one time in eight."""
    return st.integers(0, 7).flatmap(lambda chance: st.sampled_from(values) if chance else anything)


def arguments_of(name: str) -> st.SearchStrategy[Any]:
    """Generate arguments of a tool: mostly its own fields, mostly with valid values."""
    known = {field: mostly(values) for field, values in FIELDS[name].items()}
    needed = ("fd", "pattern", "file_path", "data", "query", "commands", "target")
    required = {field: known[field] for field in needed if field in known}
    shaped = st.fixed_dictionaries(required, optional={k: v for k, v in known.items() if k not in required})
    mixed = st.dictionaries(st.sampled_from([*known, "bogus", "", "\ud800", "fd "]), anything, max_size=4)
    # `anything` is many strategies, which `|` would all count as one each
    return st.integers(0, 5).flatmap(lambda chance: (anything, mixed)[chance] if chance < 2 else shaped)


class HostileCaller:
    """Calls tools of a toolbox with stored contents and a directory, and compares everything stored."""

    def __init__(self, store: Store, client: redis.Redis, folder: Path) -> None:
        self.store = store
        self._client = client
        self._root = folder / "root"
        (self._root / "sub").mkdir(parents=True)
        (self._root / "in.txt").write_text("in")
        (self._root / "link").symlink_to(folder / "secret")
        (folder / "secret").write_text("secret")
        os.mkfifo(self._root / "fifo")
        (folder / "adder.toml").write_text('[model]\nname = "any"\n')
        self._linked = linked_programs({"adder": folder / "adder.toml"})
        self._folder = folder
        self.begin()

    def begin(self) -> None:
        """Reset the store to the contents that the calls refer to."""
        self._client.flushall()
        proc = self.store.process("triage")
        config = FDConfig(max_direct_output_chars=200, default_page_size=40, max_read_chars=3000)
        context = context_for(
            proc.handle,
            "fdstore",
            enabled=BUILT_IN,
            config=config,
            linked=self._linked,
            export_root=self._root,
            preload_root=self._root,
            wake=lambda process: None,
            commands=("grep", "sort"),
        )
        self._toolbox = Toolbox(context, [pick])
        proc.create("".join(f"line {number}\n" for number in range(1, 30)), page_size=40)
        proc.create("</fd_content>\0ERROR \N{GRINNING FACE}\r\n" * 9, page_size=7)
        self.store.run(store_references(context, '<ref id="plan">dig\nfill</ref>'))
        proc.child(share=["fd:1"])
        made = self.store.run(self._toolbox.start("pipe", {"commands": ["sort"], "in_fd": "fd:1"}))
        assert 'process="triage.2"' in made.content
        self.state = self._look()

    def call(self, name: Any, arguments: Any) -> ToolResult | Started:
        result = self.store.run(self._toolbox.start(name, arguments))
        before, self.state = self.state, self._look()
        if isinstance(result, ToolResult) and result.is_error:
            assert self.state == before, f"{name} was refused and changed something"
        if len(self.state) > MANY_KEYS or b"fdstore:{triage}:triage:fd:1" not in self.state:
            self.begin()
        return result

    def _look(self) -> dict[Any, Any]:
        """Return all stored keys and files, except the replies kept for idempotency."""
        keys = [key for key in self._client.scan_iter(count=1000) if b":op:" not in key]
        found: dict[Any, Any] = dict(zip(keys, self._dumped(keys), strict=True))
        assert (self._folder / "secret").read_text() == "secret"
        for path in self._root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                found[path] = path.read_bytes()
                if path.name != "in.txt" and len(found[path]) > 10**5:
                    path.unlink()
        return found

    def _dumped(self, keys: list[bytes]) -> list[Any]:
        with self._client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.dump(key)
            return list(pipeline.execute())


def pick(texts: list[str], count: int = 1, level: Any = None) -> str:
    """A user's function."""
    return "|".join(texts) * min(count, 100)


@pytest.fixture
def hostile_caller(store: Store, redis_url: str, tmp_path: Path) -> Any:
    with redis.Redis.from_url(redis_url) as client:
        yield HostileCaller(store, client, tmp_path)


def check(result: ToolResult | Started, ours: bool) -> None:
    """Assert that the result can be sent to a model."""
    if isinstance(result, Started):
        return
    assert result.content.encode("utf-8") or not result.is_error
    assert len(result.content) < 10_000
    if not ours and not result.is_error:
        return
    for element in elements(result.content):
        assert (element.name == "fd_error") == result.is_error
        if result.is_error:
            assert element["type"] in TYPES - {"error"}
            assert 0 < len(element.message) < 1000


hard = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("name", FIELDS)
def test_any_arguments_from_a_model_get_a_result(hostile_caller: HostileCaller, name: str) -> None:
    @hard
    @given(arguments_of(name))
    def answered(arguments: Any) -> None:
        check(hostile_caller.call(name, arguments), ours=name != "pick")

    answered()


@settings(hard, max_examples=200)
@given(st.data())
def test_any_tool_name_from_a_model_gets_a_result(hostile_caller: HostileCaller, data: st.DataObject) -> None:
    check(hostile_caller.call(data.draw(anything), data.draw(anything)), ours=True)


@pytest.mark.parametrize(
    ("fds", "files", "kind"),
    [
        (["fd:1#L1", "fd:99"], ["in.txt"], "not_found"),
        (["fd:1#L1", "fd:1#L99"], [], "invalid_range"),
        (["fd:1#L1"], ["in.txt", "none"], "file_not_found"),
    ],
)
def test_a_spawn_refused_for_its_last_preload_stores_none_of_the_earlier_ones(
    hostile_caller: HostileCaller, fds: list[str], files: list[str], kind: str
) -> None:
    preload = {"additional_preload_fds": fds, "additional_preload_files": files}

    result = hostile_caller.call("spawn", {"program_name": "adder", "query": "Add.", **preload})

    assert isinstance(result, ToolResult)
    assert [element["type"] for element in elements(result.content)] == [kind]
