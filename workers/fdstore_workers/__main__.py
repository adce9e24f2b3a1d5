"""`python -P -m fdstore_workers`, also `fdstore worker`: run one worker until SIGTERM."""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import Any

import click

from fdstore.errors import FDStoreError
from fdstore.files.permissions import parse_permissions
from fdstore.setup import settings
from fdstore.setup.foreign_variables import drop_foreign_variables
from fdstore.setup.log_options import log_options
from fdstore.setup.logs import log_to_stderr
from fdstore.setup.optional_packages import frozen_imports, require
from fdstore.setup.safe_path import drop_relative_entries
from fdstore.setup.standard_files import reserve_standard_files
from fdstore.setup.url_arguments import exit_code_of, password_warning, read_url_file
from fdstore.text.layout import show_controls


@click.command(
    name="worker",
    help="Run spawned agents and pipelines until SIGTERM or Ctrl-C. Agents need the key of their model's "
    "provider (ANTHROPIC_API_KEY, OPENAI_API_KEY); without any the worker runs pipelines only, and agents of "
    "programs that name a server of models that is allowed.\n\n"
    "A program is code. On the embedded store, which only you can reach, programs may use everything they "
    "name. On a store given by URL they may use only what the options below allow.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--url", help="URL of the store (default: $FDSTORE_URL, else the embedded server).")
@click.option(
    "--url-file", help="Read the URL from the first line of this file, which only you may be able to read."
)
@click.option("--prefix", help="Prefix of all keys (default: $FDSTORE_PREFIX, else fdstore).")
@click.option("--broker-url", help="URL of the queue (default: $FDSTORE_BROKER_URL, else the store's Redis).")
@click.option(
    *("-c", "--concurrency"),
    type=click.IntRange(1, 10_000),
    default=8,
    show_default=True,
    help="Number of agents that run at the same time. Waiting agents do not count.",
)
@click.option(
    "--pool",
    type=click.Choice(["threads", "prefork"]),
    default="threads",
    show_default=True,
    help="threads: all agents in one process; prefork: one process per running agent, for CPU-bound tools.",
)
@click.option(
    "--sandbox",
    "engine",
    type=click.Choice(["auto", "bubblewrap", "sandlock", "off"]),
    default="auto",
    show_default=True,
    help="Sandbox for the commands of pipelines. auto: the first that works here; off: refuse commands.",
)
@click.option(
    "--unsandboxed-commands",
    is_flag=True,
    help="Run the commands of pipelines without a sandbox if no sandbox works here.",
)
@log_options("info", "; info logs one line for each process that ends here")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve /metrics for Prometheus, and /healthz and /readyz for probes; 0: any free port.",
)
@click.option(
    "--metrics-host",
    default="127.0.0.1",
    show_default=True,
    metavar="HOST",
    help="The address for --metrics-port: 0.0.0.0 for all. The port has no password.",
)
@click.option(
    "--tools-path",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Import Python functions of programs from this directory, after installed packages; repeatable.",
)
@click.option(
    "--allow-python",
    multiple=True,
    metavar="PATTERN",
    help="Python functions that programs may call, for example 'pkg.tools:*'; repeatable.",
)
@click.option(
    "--allow-command",
    "allow_commands",
    multiple=True,
    metavar="NAME",
    help="Command that pipelines may run; repeatable.",
)
@click.option(
    "--allow-model-server",
    "allow_model_servers",
    multiple=True,
    metavar="URL[=VARIABLE]",
    help="Server of models that programs may name, and the variable whose value may be sent to it as a key; "
    "repeatable. [env: FDSTORE_ALLOW_MODEL_SERVERS, separated by blanks]",
)
@click.option(
    "--export-root",
    metavar="DIR",
    help="Directory that fd_to_file may write to; a program's [export] root must lie below it.",
)
@click.option(
    "--preload-root",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Directory that programs may preload files from.",
)
def worker(
    url: str | None,
    url_file: str | None,
    broker_url: str | None,
    concurrency: int,
    metrics_port: int | None,
    metrics_host: str,
    tools_path: tuple[str, ...],
    **configuration: Any,
) -> None:
    drop_relative_entries()
    drop_foreign_variables()
    require()
    # appended, so that no file there shadows an installed package
    sys.path += map(os.path.abspath, tools_path)
    warnings = [
        password_warning(*each) for each in (("--url", url or ""), ("--broker-url", broker_url or ""))
    ]
    if url_file:
        url, warning = read_url_file(url_file)
        warnings.append(warning)
    for each in filter(None, warnings):
        click.echo(each, err=True)
    env = settings.read()
    broker_url = broker_url or env.broker_url
    configuration["allow_model_servers"] += tuple(env.allow_model_servers.split())
    parse_permissions(
        embedded=False,
        commands=configuration["allow_commands"],
        model_servers=configuration["allow_model_servers"],
    )
    # check the URLs here, to report a usage error: the supervisor only sees that its child did not start
    from fdstore.agents.runtime.broker_url import find_broker
    from fdstore.wire.store_url import parse_store_url

    if chosen := url or env.url:
        parse_store_url(chosen)
    if chosen or broker_url:
        find_broker(chosen or "", broker_url)
    log_to_stderr(configuration["log_level"], configuration["log_format"])
    with frozen_imports():
        from fdstore.agents.loop.models.providers import import_keyed
        from fdstore.store.processes.leases import holder_name
        from fdstore_workers.worker import Worker

        import_keyed()

    status = None
    if metrics_port is not None:
        require(("prometheus_client",), "metrics")
        from fdstore_workers.status_server import open_status

        status = open_status(metrics_host, metrics_port, concurrency)
    configured = Worker(
        name=holder_name(socket.gethostname()),
        url=url,
        broker_url=broker_url,
        concurrency=concurrency,
        status=status,
        **configuration,
    )
    sys.exit(configured.supervise())


def main() -> None:
    """Run the command. An `FDStoreError` prints one line to stderr and exits with 1 (usage error: 2)."""
    reserve_standard_files()
    try:
        worker(prog_name="fdstore worker", windows_expand_args=False)
    except FDStoreError as error:
        click.echo(f"fdstore: {error.type}: {show_controls(str(error), keep='')}", err=True)
        logging.shutdown()
        sys.exit(exit_code_of(error))


if __name__ == "__main__":
    main()
