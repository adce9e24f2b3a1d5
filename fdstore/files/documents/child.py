"""The process that reads one document: standard input is the document, standard output gets its text.

`main` sets its limits, forbids itself what a reader never needs, reads, and reports in one line of JSON.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import sys
from importlib import import_module

from fdstore.files.documents.writing import NoText, TextWriter

MAX_SAID_CHARS = 300


def main(reader: str, report: int, memory_bytes: int, cpu_s: int, text_bytes: int, refused: str) -> None:
    """Read a document by the module `reader`, and report to the descriptor `report`. `refused` is a filter of
    system calls in hexadecimal digits, "" for none."""
    for limit, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, text_bytes),
        (resource.RLIMIT_NOFILE, 32),
    ):
        _limit(limit, most)
    read = import_module(f"fdstore.files.documents.{reader}").read
    _limit(resource.RLIMIT_AS, memory_bytes)
    if refused:
        _forbid(bytes.fromhex(refused))
    writer = TextWriter(sys.stdout.buffer)
    problem, said = "", ""
    try:
        read(sys.stdin.buffer, writer)
        writer.flush()
        sys.stdout.buffer.flush()
    except NoText as error:
        problem, said = error.problem, error.said
    except MemoryError:
        problem = "memory"
    except OSError as error:
        problem, said = ("text", "") if error.errno == errno.EFBIG else ("damaged", f"it is damaged: {error}")
    except BaseException as error:  # noqa: BLE001 - whatever a reader raises for a damaged file, panics too
        problem, said = "damaged", f"it is damaged: {type(error).__name__}: {error}"
    said = " ".join(said.split())[:MAX_SAID_CHARS]
    os.write(report, json.dumps({"problem": problem, "said": said}).encode())
    os._exit(0)  # the libraries may not take themselves down after that


def _limit(which: int, most: int) -> None:
    hard = resource.getrlimit(which)[1]
    end = most + (which == resource.RLIMIT_CPU)  # at its hard end a process is killed without saying why
    most, end = (each if hard == resource.RLIM_INFINITY else min(each, hard) for each in (most, end))
    try:
        resource.setrlimit(which, (most, end))
    except (OSError, ValueError):  # macOS has no limit of memory
        if which != resource.RLIMIT_AS:
            raise


def _forbid(code: bytes) -> None:
    """Refuse for good, where the system can: to start programs, to open files for writing, sockets, and other
    system calls that a reader never needs."""
    libc = ctypes.CDLL(None, use_errno=True)
    word = ctypes.c_ulong
    no_new_privileges, seccomp, filtered = 38, 22, 2
    if libc.prctl(no_new_privileges, word(1), word(0), word(0), word(0)) != 0:
        return
    rights = ctypes.c_uint64(((1 << 13) - 1) & ~(_READ_FILE | _READ_FOLDER))
    rules = libc.syscall(_CREATE_RULES, ctypes.byref(rights), ctypes.c_size_t(8), 0)
    if rules >= 0:
        libc.syscall(_RESTRICT_SELF, rules, 0)
    kept = ctypes.create_string_buffer(code, len(code))
    program = _Filter(len(code) // 8, ctypes.addressof(kept))
    libc.prctl(seccomp, word(filtered), ctypes.byref(program), word(0), word(0))


_CREATE_RULES, _RESTRICT_SELF = 444, 446  # of Landlock
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))
