"""Texts of each kind, with lines that their previews have; and texts of none."""

from __future__ import annotations

import json

PYTHON = """Traceback (most recent call last):
  File "/app/main.py", line 10, in <module>
    main()
    ^^^^^^
  File "/app/load.py", line 3, in load
    raise ValueError("no such day")
ValueError: no such day
"""
JAVA = """Exception in thread "main" java.lang.IllegalStateException: closed
\tat com.example.Pool.get(Pool.java:12)
\tat com.example.Main.main(Main.java:5)
Caused by: java.io.IOException: reset
\tat com.example.Wire.read(Wire.java:99)
\t... 2 more
"""
NODE = """/app/index.js:3
TypeError: Cannot read properties of undefined (reading 'x')
    at load (/app/index.js:3:9)
    at Object.<anonymous> (/app/index.js:7:1)
"""
GO = """panic: runtime error: index out of range [3] with length 2

goroutine 1 [running]:
main.pick(...)
\t/app/main.go:9
main.main()
\t/app/main.go:14 +0x1d

goroutine 7 [select]:
main.wait()
\t/app/main.go:90 +0x2
exit status 2
"""
DIFF = """diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 one
--- two
+++ three
 four
diff --git a/b.png b/b.png
new file mode 100644
Binary files /dev/null and b/b.png differ
"""
PYTEST = """============================= test session starts ==============================
collected 3 items
tests/test_a.py ..F                                                      [100%]
=================================== FAILURES ===================================
>       assert add(1, 1) == 3
E       assert 2 == 3
=========================== short test summary info ============================
FAILED tests/test_a.py::test_add - assert 2 == 3
========================= 1 failed, 2 passed in 0.04s ==========================
"""
HTML = """<!DOCTYPE html>
<html><head><title>A &amp; B</title><style>p { color: red }</style></head>
<body><!-- <h1>no</h1> --><h1>First <b>part</b></h1><p>Hello <a href="x">you</a>.</p>
<script>document.write("<h2>no</h2>")</script><h2>Second</h2><img src="y"></body></html>
"""
CODE = """import os


class Store:
    def get(self, key):
        return None

    async def put(self, key, value): ...


def main() -> None:
    pass
"""
RUST = """error[E0308]: mismatched types
 --> src/main.rs:2:18
  |
2 |     let x: i32 = "a";
  |                  ^^^ expected `i32`, found `&str`

warning: unused variable: `y`
 --> src/main.rs:3:9
"""

EXAMPLES: dict[str, tuple[str, list[str]]] = {
    "json shape": (
        json.dumps({"a": [{"id": 1, "n": None}, {"id": 2.5}], "b": True, "c": {}}),
        [
            "object",
            "  a: array of 2",
            "    its 2 items: 2 objects",
            "      id: 1 integer, e.g. 1, 1 number, e.g. 2.5",
            "      n (in 1 of 2): null",
            "  b: boolean, e.g. true",
            "  c: object without keys",
        ],
    ),
    "json shape, a map": (
        json.dumps({f"k{n}": {"v": n} for n in range(100)}),
        ["  100 keys, k0, k1, k2, k3, k4, ...; their values: 100 objects", "    v: 100 integers, 0 to 99"],
    ),
    "json lines shape": (
        '{"a": 1}\n{"a": "x", "b": []}\n',
        [
            "JSON in each line: 2 looked at, of 2",
            '  a: 1 integer, e.g. 1, 1 string, e.g. "x"',
            "  b (in 1 of 2): array of 0",
        ],
    ),
    "table": (
        'id,name,price\n1,"a, b",1.5\n2,,2\n3,c,3\n4,c,4\n',
        [
            "3 columns, separated by commas; 4 rows after the header",
            "column 1: id - 4 integers, 1 to 4",
            "column 2: name - texts, 2 different, e.g. a, b, 1 empty",
            "column 3: price - 4 numbers, 1.5 to 4",
            '2:1,"a, b",1.5',
        ],
    ),
    "table, of tabs": (
        "id\tname\n" + "".join(f"{n}\tx\n" for n in range(9)),
        ["2 columns, separated by tabs; 9 rows after the header", "column 2: name - the same text, e.g. x"],
    ),
    "outline": (
        "# Tools\n\nFor people.\n\n## Install\n\n```sh\n# no heading\nmake\n```\n\n"
        "## Use\n\nRun.\n\n### More\n\nx\n",
        ["1:# Tools", "3:For people.", "4 headings:", "5:## Install", "12:## Use", "16:### More"],
    ),
    "outline, of underlines": (
        "Tools\n=====\n\nFor people.\n\nInstall\n-------\n\nRun.\n\n"
        "Use\n---\n\nUsage\n-----\n\na\n\nNotes\n-----\n\nb\n",
        ["5 headings:", "1:Tools", "6:Install", "11:Use", "14:Usage", "19:Notes"],
    ),
    "outline, of chapters": (
        "A story.\n\n" + "".join(f"CHAPTER {n}. At sea\n\nIt was {n}.\n\n" for n in ("I", "II", "III", "IV")),
        ["4 headings:", "3:CHAPTER I. At sea", "15:CHAPTER IV. At sea"],
    ),
    "diff": (DIFF, ["2 files, +1 -1", "1:a.py +1 -1", "10:a/b.png b/b.png +0 -0 binary"]),
    "traceback, of Python": (
        PYTHON,
        [
            "Python traceback in lines 1-7, 2 frames",
            "7:ValueError: no such day",
            '5:  File "/app/load.py", line 3, in load',
        ],
    ),
    "traceback, of Java": (
        JAVA,
        ["4:Caused by: java.io.IOException: reset", "5:\tat com.example.Wire.read(Wire.java:99)"],
    ),
    "traceback, of Node": (
        NODE,
        [
            "JavaScript traceback in lines 2-4, 2 frames",
            "2:TypeError: Cannot read properties of undefined (reading 'x')",
            "3:    at load (/app/index.js:3:9)",
        ],
    ),
    "traceback, of Go": (
        GO,
        ["1:panic: runtime error: index out of range [3] with length 2", "5:\t/app/main.go:9"],
    ),
    "compiler errors, of gcc": (
        "make: Entering directory\nsrc/a.c:3:5: error: unknown type name 'x'\n  3 | x y;\n"
        "src/b.h:9:1: warning: unused\nsrc/a.c:4:1: fatal error: no.h: No such file\n",
        [
            "lines that report 2 errors and 1 warning in 2 files",
            "2:src/a.c:3:5: error: unknown type name 'x'",
            "5:src/a.c:4:1: fatal error: no.h: No such file",
        ],
    ),
    "compiler errors, of Rust": (
        RUST,
        [
            "lines that report 1 error and 1 warning in 1 file",
            "1:error[E0308]: mismatched types --> src/main.rs:2:18",
        ],
    ),
    "compiler errors, of TypeScript": (
        "src/x.ts(12,5): error TS2322: Type 'a'\nsrc/y.ts(1,5): error TS2322: Type 'b'\n",
        ["lines that report 2 errors and 0 warnings in 2 files"],
    ),
    "test output": (
        PYTEST,
        [
            "1:============================= test session starts ==============================",
            "6:E       assert 2 == 3",
            "8:FAILED tests/test_a.py::test_add - assert 2 == 3",
        ],
    ),
    "log": (
        "".join(f"13:07:0{n} INFO 0 errors, {n} done\n" for n in range(9)) + "13:07:10 ERROR disk full\n",
        ["1 line looks like an error:", "10:13:07:10 ERROR disk full"],
    ),
    "document": (
        "[page 1]\n\nThe year\nin figures\n[page 2]\n [page 7]\n[page 3]\nthe end\n",
        [
            "3 pages; the line of each, and how it begins:",
            "1:[page 1] The year",
            "5:[page 2] [page 7]",
            "7:[page 3] the end",
        ],
    ),
    "metrics": (
        "# HELP a_total Sum.\n# TYPE a_total counter\na_total 3\n# TYPE b summary\n"
        'b{quantile="0.5"} 0.25\nb_sum 1e3\nb_count 7 1700000000\nc{x="}"} NaN\n',
        [
            "2 metric families are declared; 5 samples, also of 1 name not declared here",
            "2:a_total counter, 1 sample",
            "4:b summary, 3 samples",
        ],
    ),
    "html outline": (
        HTML,
        [
            "title: A & B",
            "2 headings, 1 link, 1 image",
            "h1: First part",
            "h2: Second",
            "text: First part / Hello you. / Second",
        ],
    ),
    "source code": (
        CODE,
        [
            "Python: 4 lines that look like definitions",
            "4:class Store:",
            "5:    def get(self, key):",
            "8:    async def put(self, key, value): ...",
        ],
    ),
}

PLAIN = {
    "nothing": "",
    "words": "The build failed, and nobody knows why.\n" * 50,
    "Markdown": "# Title\n\n- one\n\n```python\nimport os\ndef a(): ...\ndef b(): ...\ndef c(): ...\n```\n"
    * 5,
    "a configuration with comments": "# Port\nport 6379\n\n# Where\nbind 127.0.0.1\n\n" * 9,
    "comments of several lines": "# One\n# two\n\n## three\n\nset x\n\n" * 9,
    "rules between paragraphs": "Some words.\n\n-----\n\nOther words.\n\n=====\n\n" * 9,
    "a text table": "name  size\n----------\na  1\nb  2\n\n" * 9,
    "parts of sentences": "Part of it was said.\n\nPART ONE of many\n\n" * 9,
    "almost JSON": '{"a": 1,}',
    "JSON and more": "[" + "1," * 9 + "1] and more",
    "a number": "17",
    "a mark alone": "[page x]\nwords\n" * 9,
    "one long line": "x" * 100_000,
    "brackets": "[" * 100_000,
    "line ends": "\n" * 100_000,
    "NUL": "\0" * 100_000,
    "prose with commas": "one, two\nthree, four\nfive, six\nseven, eight\nnine, ten\n",
    "a script": "cd /tmp\nls -la\nmake all\n" * 20,
    "numbers": "1,2\n3,4\n5,6\n7,8\n9,10\n",
}
