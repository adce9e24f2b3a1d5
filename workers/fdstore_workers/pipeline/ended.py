"""The ends of the stages of a pipeline."""

from __future__ import annotations

from fdstore import end_reasons
from fdstore.records import Record
from fdstore.text.commands import fatal_signal, pipeline_exit_code
from fdstore_workers.pipeline.launch_settings import NOT_MADE


class Ended(Record, frozen=True, kw_only=True):
    """The result of a run: the exit code of each stage in order (128+n for signal n), and the reason if the
    runner ended it.

    "closed": neither the output nor a tee had a reader left. "sandbox": the sandbox of a stage failed; the
    code of that stage and of the pipeline is 125. `is_unread`: the output had no reader left, but a tee had.
    """

    codes: tuple[int, ...]
    reason: str | None = None
    is_unread: bool = False

    @property
    def code(self) -> int:
        """The exit code of the pipeline."""
        return (
            NOT_MADE
            if self.reason == end_reasons.SANDBOX
            else pipeline_exit_code(self.codes, is_unread=self.is_unread)
        )

    @property
    def signal(self) -> int | None:
        """The signal that killed a stage; SIGPIPE after its reader closed does not count."""
        return fatal_signal(self.codes, is_unread=self.is_unread)
