"""The options of `fdstore gateway`, each declared once: its type, its default, and what it means.

The command line derives its options and their help from here (`cli/struct_options.py`), `words` writes them
into the configuration of a host, and the modules that they change receive them whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec

from fdstore.setup.settings import HOST_READ_CHARS


class Option(NamedTuple):
    """What an option means.

    metavar   what the help shows in the place of its value; None for a choice
    help      a sentence for people
    needs     the option without which it is refused
    wraps     whether `--wrap` writes it into the configuration, too
    usual     its value if it is given without one
    """

    metavar: str | None
    help: str
    needs: str = ""
    wraps: bool = False
    usual: str | None = None


ToolChoice: TypeAlias = Literal["none", "read", "all"]


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a gateway, or of the change of a configuration."""

    process: Annotated[
        str | None,
        Option(
            "NAME",
            "Process of the descriptors; created if missing. [default: that of the project, see `fdstore"
            " hook`]",
            wraps=True,
        ),
    ] = None
    config: Annotated[
        Path | None,
        Option("FILE", "All servers of a host's mcp.json as one; the tool t of the server s is s__t."),
    ] = None
    http: Annotated[str | None, Option("URL", "Endpoint of a server by streamable HTTP.")] = None
    listen: Annotated[
        str | None,
        Option("HOST:PORT", "With --http: serve hosts by HTTP. [default: standard input]", needs="http"),
    ] = None
    header: Annotated[
        tuple[str, ...],
        Option(
            "'NAME: VALUE'",
            "With --http: send this header; other users can see it. [env: FDSTORE_GATEWAY_HEADERS, as JSON]",
            needs="http",
        ),
    ] = ()
    header_path: Annotated[
        tuple[str, ...],
        Option(
            "PATH",
            "With --listen: send the headers with requests for this path too. [default: that of the URL"
            " alone]",
            needs="listen",
        ),
    ] = ()
    tools: Annotated[
        ToolChoice | None,
        Option(
            None,
            "Tools of fdstore that the host sees beside the server's: all has put_fd, write_fd and close_fd"
            " too. With --wrap: at one server, and none at the others. [default: read, and none with --code"
            " only]",
            wraps=True,
        ),
    ] = None
    code: Annotated[
        Literal["also", "only"] | None,
        Option(
            None,
            "Offer run_python, whose code calls the server's tools, and find_tools: beside these, or only.",
            usual="also",
            wraps=True,
        ),
    ] = None
    code_allow: Annotated[
        tuple[str, ...],
        Option(
            "PATTERN",
            "With --code: code may call tools like this too, which may change things: 'server.write_*'.",
            needs="code",
            wraps=True,
        ),
    ] = ()
    name: Annotated[
        str | None,
        Option("NAME", "With --code: the name of one server in code. [default: server]", needs="code"),
    ] = None
    wrap: Annotated[
        Path | None,
        Option(
            "FILE", "Put the gateway before each server in a host's mcp.json; with --code, one before all."
        ),
    ] = None
    unwrap: Annotated[Path | None, Option("FILE", "Undo what --wrap did.")] = None
    out: Annotated[
        str | None,
        Option("FILE", "With --wrap, --unwrap: write here, or to standard output for -."),
    ] = None
    max_direct_output_chars: Annotated[
        int | None,
        Option(
            "N",
            "Longer texts become descriptors. [default: 8000, or as the project's fdstore.toml says]",
            wraps=True,
        ),
    ] = None
    max_read_chars: Annotated[
        int,
        Option(
            "N",
            "Maximum result of one read_fd, less for a host that cuts results: 9000 for Codex."
            f" [default: {HOST_READ_CHARS}]",
            wraps=True,
        ),
    ] = HOST_READ_CHARS

    def words(self) -> list[str]:
        """Return the options that are not as usual, as words of a command line.

        >>> GatewayOptions(code="only", code_allow=("a.*", "b.*")).words()
        ['--code', 'only', '--code-allow', 'a.*', '--code-allow', 'b.*']
        """
        words: list[str] = []
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                each = value if isinstance(value, tuple) else (value,)
                words += [word for one in each for word in (flag_of(field.name), str(one))]
        return words


USUAL = GatewayOptions()


def flag_of(field: str) -> str:
    """Return an option as it is written.

    >>> flag_of("code_allow")
    '--code-allow'
    """
    return f"--{field.replace('_', '-')}"
