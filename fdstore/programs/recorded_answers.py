"""The answers of one run of code that a repeat of it must get again.

An answer that a repeat could find changed is recorded, and so is every error: a name that was not there may
be there now. They are recorded before the next effect; a run that is lost before that may take another path,
since it has changed nothing.

What is read by names may be much more than a program keeps. After `MAX_RECORDED_BYTES` a digest is recorded
in its place: a repeat reads again, and ends if it finds another text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from fdstore.programs.interpreter.events import HostCall, Raise
from fdstore.programs.interpreter.values import to_result
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import python_state
from fdstore.store.record_format import decode_moment, decode_record, decoding
from fdstore.wire.operation import Operation

MAX_RECORDED_BYTES = 16 << 20
"""How much of the texts that may change is recorded in one run, as JSON."""


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """A recorded answer: a value, an exception, or the digest of what was read."""

    value: Any = None
    error: Raise | None = None
    digest: str = ""


class ChangedText(Exception):
    """A repeat reads another text under `ref` than the first run, which read too much to record it."""

    def __init__(self, ref: str) -> None:
        super().__init__(ref)
        self.ref = ref


class RecordedAnswers:
    """The answers of a run, by the numbers of its calls. `recorded` are those of an earlier attempt at it."""

    def __init__(self, handle: ProcessHandle, run_id: str, recorded: Mapping[int, bytes]) -> None:
        self._handle = handle
        self._run_id = run_id
        self._recorded = dict(recorded)
        self._unsaved: dict[int, bytes] = {}
        self._bytes = sum(map(len, recorded.values()))

    def __contains__(self, number: int) -> bool:
        return number in self._recorded

    def find(self, call: HostCall) -> Kept | None:
        """Return the answer that an earlier run recorded. Raises `DamagedRecord` for one that no run has."""
        stored = self._recorded.get(call.number)
        if stored is None:
            return None
        what = f"answer {call.number} of the programs of process {self._handle.id}"
        kept = decode_record(stored, Kept, what)
        with decoding(what):
            if kept.error is None and call.name == "clock":
                return Kept(decode_moment(str(kept.value)))
            to_result(kept.error or kept.value)
        return kept

    def keep(self, number: int, kept: Kept) -> None:
        """Note an answer that a repeat must get again."""
        self._unsaved[number] = msgspec.json.encode(kept)

    def keep_read(self, number: int, ref: object, answer: Any) -> None:
        """Note what was read from a text that may change, or its digest; compare it with that of an earlier
        run. Raises `ChangedText`."""
        encoded, known = msgspec.json.encode(Kept(answer)), self._recorded.get(number)
        if known is None and self._bytes + len(encoded) <= MAX_RECORDED_BYTES:
            self._bytes += len(encoded)
            self._unsaved[number] = encoded
            return
        proof = msgspec.json.encode(Kept(digest=hashlib.blake2b(encoded, digest_size=16).hexdigest()))
        if known is None:
            self._unsaved[number] = proof
        elif known != proof:
            raise ChangedText(str(ref))

    def save(self) -> Operation[None]:
        """Record what was noted since the last time: before every effect."""
        if self._unsaved:
            yield from python_state.record(self._handle, self._run_id, self._unsaved)
            self.drop()

    def drop(self) -> None:
        """Forget what was noted and not recorded."""
        self._unsaved = {}
