"""The keys of a screen, all of them: more than its last line has room for."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static


class HelpScreen(ModalScreen[None]):
    """The keys that work on the screen below it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "app.pop_screen", "Back"),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll { width: 44; max-width: 90%; height: auto; max-height: 90%; padding: 1 2;
        border: round $primary; background: $surface; }
    """

    def __init__(self, of: Screen[object]) -> None:
        super().__init__()
        self._keys: dict[str, list[str]] = {}
        for each in of.active_bindings.values():
            if each.enabled and each.binding.description:
                key = of.app.get_key_display(each.binding)
                self._keys.setdefault(each.binding.description, []).append(key)

    def compose(self) -> ComposeResult:
        keys = {said: " ".join(dict.fromkeys(keys)) for said, keys in self._keys.items()}
        widest = max((len(each) for each in keys.values()), default=0)
        lines = [f"{each:<{widest}}  {said}" for said, each in keys.items()]
        with VerticalScroll():
            yield Static(Text("\n".join([*lines, "", "Esc: back"])), id="keys", markup=False)
