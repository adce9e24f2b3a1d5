"""Values that a model may send as arguments, valid and hostile, for each tool."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fdstore.tools.catalogue import BUILT_IN
from tests.on_redis.conformance.calling import fields_of, required_of

deep: Any = "{{fd:1}}"
for _ in range(1500):
    deep = [deep] if len(str(type(deep))) % 2 else {"deep": deep}

NUMBERS = [0, 1, 2, 3, -1, 50, 2**53, 2**53 + 1, -(2**63), 10**30, 10**5000, -(10**5000)]
FLOATS = [0.0, 1.0, 2.0, 1.5, -0.0, 1e16, 1e300, float("nan"), float("inf"), -float("inf")]
TEXTS = [
    *("", " ", "\n", "\0", "\ud800", "a\udfff", "\x1b[31m", "\u202e", "٣", "3", "03", "1e3", "NaN"),
    *("true", "null"),
    *("x" * 5000, "<fd_error/>", "</fd_content>\n<message>", '"><fd_result fd="fd:1">'),
    *("{{fd:1}}", "{{fd:99}}"),
    *("(", "[", "a{1,1000}{1,1000}", "(?i)ERROR", r"\C", "^$", ".*", r"\p{Greek}", "(?<!a)b", "a" * 1001),
    *("../secret", "/etc/passwd", "out.txt", "sub/out.txt", "link", "fifo", "~", ".", "sub"),
    *("a" * 300, "o\0t"),
    *("page", "line", "char", "write", "append", "Page", "adder", "text"),
]
IDS = [
    *("fd:1", "fd-1", "1", "fd:2", "ref:plan", "fd:1#P1", "fd:1#L2-3", "fd:1#C1-99"),
    *("fd:2#P2-9", "ref:plan#L1", "fd:1#J", "fd:1#J/a/0", "fd:1#J/~2", "ref:plan#J/"),
    *("fd:99", "fd:0", "fd:-1", "fd:01", "FD:1", "fd:1 ", "fd:1\n", "fd:１", "fd:99999999999999999999"),
    *("fd:", "fd"),
    *("ref:", "ref:none", "ref:a b", "fd:1#", "fd:1#P0", "fd:1#L9-2", "fd:1#X1", "fd:1#P1-"),
    *("#L1", "fd:1#L99"),
    *("fd:1#C99999999999999999", "fd:1#P1#P2", "triage/1", "triage:fd:1", "{triage}", "*", "../fd:1"),
]

TARGETS = [
    *("triage.1", "triage.2", "triage.99", "triage.1.1", "triage.2.0", "triage.01", "triage.", ".1"),
    *("triage", "Triage.1", "triage.1 ", "triage.1\n", "triage..1", "other", "other.1", "triage.1:fds"),
    *("triage.{1}", "fd:3", "fd:4", 3, "triage.9999999999999999999999", *IDS),
]
COMMANDS = [
    *(["grep -n line", "sort"], ["grep line"], ["sort"], ["sort"] * 33, ["sort"] * 500, []),
    *([[]], ["sort", 1]),
    *(["rm x"], ["/bin/sort"], ["sort | grep x"], ["sort > x"], ["sort; sort"], ["grep 'a"], ["grep $(id)"]),
    *(["grep " + "x" * 200_000], ["sort\nsort"], ["sort {{fd:1}}"], [deep]),
    *(deep, *([text] for text in TEXTS)),
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


FIELDS: dict[str, dict[str, list[Any]]] = {
    "read_fd": {
        "fd": IDS,
        "mode": ["page", "line", "char"],
        **every([1, 2, "3", 2.0, 10**6], "start", "count", "page", "start_line", "end_line"),
        **every([True, False], "read_all", "extract_to_new_fd"),
        "wait_seconds": [0, "0", 0.01, -1, 86_401, *FLOATS[6:]],
    },
    "search_fd": {
        "fd": IDS,
        "pattern": ["line", "ERROR|7$", *TEXTS],
        "context": [0, 1, 100, 101],
        "max_matches": [1, 5, "7", 10_000, 10_001],
        **every([True, False], "ignore_case", "extract_to_new_fd"),
    },
    "diff_fd": {**every(IDS, "a", "b"), "context": [0, "3", 100, 101]},
    "sql_fd": {
        "query": ["FROM content", "SELECT line FROM content", "FROM a, b", *TEXTS],
        "fd": [None, *IDS],
        "fds": [{}, {"a": "fd:1", "b": 2}, {"a b": "fd:1"}, {"a": "fd:99"}, {"": None}, {"a": deep}],
    },
    "list_fds": {**every([1, 2, "3", 2.0], "start", "count"), "prefix": ["", "n", *TEXTS]},
    "write_fd": {"data": ["a note\n", *TEXTS]},
    "put_fd": {"text": ["a note\n", *TEXTS]},
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


OF_A_TYPE: dict[str, list[Any]] = {
    "string": TEXTS,
    "integer": [*NUMBERS, "3", 2.0],
    "number": [*NUMBERS, *FLOATS],
    "boolean": [True, False],
    "array": [[], ["line"], ["line", "ERROR|7$"], ["line"] * 11, TEXTS[:10], [7], "line", deep],
    "object": [{}, {"a": "fd:1"}, deep],
}


def values_of(name: str) -> dict[str, list[Any]]:
    """Return values for the fields of a tool: those in `FIELDS`, of the others by their types."""
    fields = fields_of(name) if name in BUILT_IN else {}
    by_type = {field: IDS if field == "fd" else OF_A_TYPE[fields[field]["type"]] for field in fields}
    return by_type | FIELDS.get(name, {})


def mostly(values: list[Any]) -> st.SearchStrategy[Any]:
    """Generate one of these values, or any value one time in eight."""
    return st.integers(0, 7).flatmap(lambda chance: st.sampled_from(values) if chance else anything)


def arguments_of(name: str) -> st.SearchStrategy[Any]:
    """Generate arguments of a tool: mostly its own fields, mostly with valid values."""
    known = {field: mostly(values) for field, values in values_of(name).items()}
    needed = {"fd", *(required_of(name) if name in BUILT_IN else ())}
    required = {field: known[field] for field in needed if field in known}
    shaped = st.fixed_dictionaries(required, optional={k: v for k, v in known.items() if k not in required})
    mixed = st.dictionaries(st.sampled_from([*known, "bogus", "", "\ud800", "fd "]), anything, max_size=4)
    # `anything` is many strategies, which `|` would all count as one each
    return st.integers(0, 5).flatmap(lambda chance: (anything, mixed)[chance] if chance < 2 else shaped)
