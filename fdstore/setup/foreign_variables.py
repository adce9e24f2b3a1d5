"""Variables of the environment that are meant for other programs, and that libraries of ours would read.

Celery, kombu and billiard read these when they are imported: one `REMAP_SIGTERM`, set for another Celery
application, would make our workers drop their agents at SIGTERM. Our own commands and workers remove them
before that. Python functions of users lose nothing, since the libraries are imported by then. What Celery
reads later, `$CELERY_CONFIG_MODULE` and the URLs of brokers, stays for such functions; our application reads
none of them, see `fdstore.agents.runtime.queue.celery_app`.

This module imports only what Python has loaded at startup, as `safe_path` does.
"""

import os
import sys

OF_CELERY = frozenset(
    [
        *("AUTOSCALE_KEEPALIVE", "CELERY_BENCH", "CELERY_BENCH_EVERY", "CELERY_CUSTOM_WORKER_POOL"),
        *("CELERY_LOG_FILE", "CELERY_LOG_LEVEL", "CELERY_LOG_REDIRECT", "CELERY_LOG_REDIRECT_LEVEL"),
        *("CELERY_RDBSIG", "CELERY_SKIP_CHECKS", "CELERY_TRACE_APP", "CELERY_WORKER_REVOKES_MAX"),
        *("CELERY_WORKER_REVOKE_EXPIRES", "CELERY_WORKER_SUCCESSFUL_EXPIRES"),
        *("CELERY_WORKER_SUCCESSFUL_MAX", "C_BENCH", "C_BENCH_EVERY", "C_FAKEFORK", "C_FORCE_ROOT"),
        *("C_IMPDEBUG", "C_REMDEBUG", "C_STRICT_APP", "C_WARN_APP", "C_WNOCONF", "DISABLE_TRACEBACKS"),
        *("EVENTLET_NOBLOCK", "FORKED_BY_MULTIPROCESSING", "KOMBU_DEBUG_POOL"),
        *("KOMBU_DISABLE_LIMIT_PROTECTION", "KOMBU_LOG_CHANNEL", "KOMBU_LOG_CONNECTION", "KOMBU_LOG_DEBUG"),
        *("MP_LOG", "MP_MAIN_FILE", "MULTIPROCESSING_FORKING_DISABLE", "NOSETPS", "PICKLE_PROTOCOL"),
        *("REMAP_SIGTERM", "TIMER_DEBUG", "USE_FAST_LOCALS", "_MP_FORK_LOGFILE_", "_MP_FORK_LOGFORMAT_"),
        *("_MP_FORK_LOGLEVEL_",),
    ]
)
"""Variables that change how Celery, kombu and billiard work, in whichever program imports them."""

IGNORED_OF_CELERY = frozenset(
    [
        *("CELERY_BROKER_READ_URL", "CELERY_BROKER_URL", "CELERY_BROKER_WRITE_URL"),
        *("CELERY_CONFIG_MODULE", "CELERY_LOADER", "CELERY_RESULT_BACKEND"),
    ]
)
"""Variables that belong to one application, which ours never reads."""


def drop_foreign_variables() -> None:
    """Remove `OF_CELERY` from the environment, and the filters of warnings that `$PYTHONWARNINGS` set: as
    errors, warnings of libraries would end our commands. Call it before anything else is imported."""
    for name in OF_CELERY.intersection(os.environ):
        del os.environ[name]
    if os.environ.get("PYTHONWARNINGS"):
        _restore_warnings()


def _restore_warnings() -> None:
    """Put the filters back that Python has without options: only those of `__main__` are shown."""
    import warnings

    sys.warnoptions.clear()
    warnings.resetwarnings()
    warnings.filterwarnings("default", category=DeprecationWarning, module="__main__")
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category, append=True)
