"""The verb claude-plugin: the plugin for Claude Code."""

from __future__ import annotations

import click

from fdstore.cli.session import CliSession, verb, warn_without_server
from fdstore.setup.optional_packages import is_installed, require


@verb
def claude_plugin(session: CliSession) -> None:
    """Print the directory of a plugin for Claude Code, which is rewritten each time.

    With it, outputs of tools that are longer than 8000 characters (Bash, Grep, WebFetch, subagents, MCP)
    become descriptors of the project's process before the model sees them. The model reads and searches
    them with the tools of the plugin's own server; `fdstore saved` shows what was kept out. Needs the extra
    [mcp]. With the extra [python] the model may also run code over them, with run_python.

    The project's process is named in its fdstore.toml, or after its directory: `fdstore hook --help`.

    \b
    claude --plugin-dir "$(fdstore claude-plugin)"
    """
    require(("mcp",), "mcp")
    if session.url is not None:
        raise click.UsageError(
            "the plugin uses the store of Claude Code's environment: set FDSTORE_URL there"
        )
    from fdstore.hosts.hooks.plugin import write_plugin
    from fdstore.local.data_directory import check_owner
    from fdstore.programs.interpreter.pool import PACKAGE
    from fdstore.setup import settings

    data_dir = settings.read().data_dir.absolute()
    check_owner(data_dir)
    # not the URL, which may have a password: the server finds it in its environment, as this command did
    environment = {"FDSTORE_PREFIX": session.chosen_prefix, "FDSTORE_DATA_DIR": str(data_dir)}
    directory = write_plugin(data_dir / "claude-plugin", environment, with_python=is_installed(PACKAGE))
    warn_without_server(session.chosen_url)
    session.show({"directory": str(directory)}, str(directory))
