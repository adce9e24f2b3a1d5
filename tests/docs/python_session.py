"""Run blocks of Python in one namespace: each line of standard input is a name and a source, as JSON.

The answer to each is a line with what it printed and its traceback, or null. Run by `python -c`, so that
modules are imported from the working directory, as in a script there.
"""

import contextlib
import io
import json
import linecache
import sys
import traceback


def _run_blocks(names):
    answer = sys.stdout
    for line in sys.stdin:
        name, source = json.loads(line)
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        printed, error = io.StringIO(), None
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(source, name, "exec"), names)
            except BaseException:  # noqa: BLE001, reported to the test
                error = traceback.format_exc()
        print(json.dumps([printed.getvalue(), error]), file=answer, flush=True)


_run_blocks(globals())
