"""Read the software, version and mode of a server from its INFO.

Redis and Valkey name these fields differently: Valkey reports in `redis_version` the Redis it is compatible
with, and calls its mode `server_mode`. What else differs is where it matters: the wording of errors in
`redis_errors`, file formats in `fdstore.local.redis_conf`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NEARLY_FULL = 0.9
"""The part of maxmemory above which `doctor` reports a problem, and contents move out before their time."""


def software(info: Mapping[str, Any]) -> str:
    """Return the name of the server's software.

    >>> software({"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "9.1.2"})
    'Valkey'
    """
    return "Valkey" if "valkey_version" in info else "Redis"


def software_version(info: Mapping[str, Any]) -> str:
    """Return the version of the server's software; "" if INFO does not say it.

    >>> software_version({"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "9.1.2"})
    '9.1.2'
    """
    return str(info.get("valkey_version") or info.get("redis_version", ""))


def is_cluster_node(info: Mapping[str, Any]) -> bool:
    """Return whether the server is a node of a Cluster.

    >>> is_cluster_node({"redis_mode": "cluster"}), is_cluster_node({"server_mode": "standalone"})
    (True, False)
    """
    return "cluster" in (info.get("redis_mode"), info.get("server_mode"))
