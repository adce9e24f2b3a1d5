"""The table of tasks, and the function that runs them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fdstore.bench.stage import stage
from tests.bench.tasks import coding, documents, logs, many, tables
from tests.bench.tasks.hosts import COLUMNS
from tests.bench.tasks.results import Verdict, judge
from tests.bench.tasks.running import run
from tests.bench.tasks.task import Task

TASKS: dict[str, Task] = {
    task.name: task for task in (*logs.TASKS, *documents.TASKS, *tables.TASKS, *many.TASKS, *coding.TASKS)
}
"""All tasks by name."""


def measure_tasks(names: Collection[str] = ()) -> Iterator[Verdict]:
    """Run these tasks (default: all) in all columns, one task per iteration."""
    with stage(quick=True, own_processor=False) as made:
        for name, task in TASKS.items():
            if not names or name in names:
                yield judge(run(made.store, task, column) for column in COLUMNS)
