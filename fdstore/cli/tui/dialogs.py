"""Questions on the screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Label

from fdstore.text.layout import show_controls


class Question(ModalScreen[bool]):
    """A question that y answers with yes; any other key listed, with no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q,enter", "answer(False)", "No"),
    ]
    DEFAULT_CSS = """
    Question { align: center middle; }
    Question > Vertical { width: auto; max-width: 80%; height: auto; padding: 1 3; border: round $error;
        background: $surface; }
    Question Label { width: auto; max-width: 100%; }
    Question #keys { color: $text-muted; margin-top: 1; }
    """

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = show_controls(question, keep="\n")

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(self._question, markup=False)
            yield Label("y: yes    n: no", markup=False, id="keys")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
