"""Agents of these tests: their program files, their launch, and their records."""

from __future__ import annotations

from pathlib import Path

from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_loader import load
from fdstore.agents.runtime.waker import waker
from fdstore.client import Process, Store
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord
from fdstore.store.processes import process_records
from fdstore.store.processes.process_records import ProcessAnswer
from tests.dialects import current


def write_program(folder: Path, name: str, sections: str = "") -> Path:
    """Write the program `name`, whose model is scripted and whose prompt is "You are NAME."."""
    path = folder / f"{name}.toml"
    model = f'[model]\nname = "scripted"\n{current().in_program()}'
    prompt = f'{model}[prompt]\nsystem = "You are {name.upper()}."\n'
    path.write_text(prompt + sections)
    return path


def launch(store: Store, program: Path, query: str, name: str | None = None) -> Process:
    """Launch an agent for the workers to run."""
    root = launch_root(store, load(program), query, name)
    waker(store.url, store.prefix)(root.id)
    return root


def record_of(store: Store, process: str) -> ProcessRecord:
    return store.run(process_records.record(store.prefix, process))


def has_ended(store: Store, process: str) -> bool:
    return record_of(store, process).state in ENDED


def answer_of(store: Store, process: str) -> ProcessAnswer:
    return store.run(process_records.answer_of(store.prefix, process))
