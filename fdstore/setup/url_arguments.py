"""Options for a store's URL. Every user of a machine can read the command line of a process, so a URL with a
password belongs in the environment or in a file; on the command line it works, with a warning.
"""

from __future__ import annotations

import os
import stat

from fdstore.errors import FDStoreError, InvalidArgument
from fdstore.setup.url_options import has_password

MAX_BYTES = 65_536

FAILED, USAGE = 1, 2

_COMMAND_LINE = {"url", "prefix", "FDSTORE_URL", "FDSTORE_BROKER_URL", "FDSTORE_DATA_DIR"}
"""Arguments that come from the common options and the environment."""


def exit_code_of(error: FDStoreError) -> int:
    """Return the exit code of a command that ends with `error`: that of a usage error if the URL or the
    prefix is wrong, else 1.

    >>> exit_code_of(InvalidArgument("url", "it cannot be read"))
    2
    """
    return USAGE if isinstance(error, InvalidArgument) and error.argument in _COMMAND_LINE else FAILED


def password_warning(option: str, url: str) -> str:
    """Return a warning for a URL passed as an option; "" if it contains no password."""
    if not has_password(url):
        return ""
    return (
        f"fdstore: warning: others on this machine can see the password in {option}; give the URL in "
        "FDSTORE_URL or with --url-file"
    )


def read_url_file(path: str) -> tuple[str, str]:
    """Read the URL from the first line of a file. Return it, and a warning if others can read the file ("" if
    not).

    Raises `InvalidArgument`.
    """
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            lines = file.read(MAX_BYTES).decode("utf-8").split("\n")
    except OSError as error:
        problem = (error.strerror or type(error).__name__).lower()
        raise InvalidArgument("url-file", f"the file cannot be read: {problem}") from error
    except UnicodeDecodeError:
        raise InvalidArgument("url-file", "the file is not text") from None
    url = lines[0].strip()
    if not url:
        raise InvalidArgument("url-file", "the URL must be the first line of the file")
    if not stat.S_ISREG(mode) or not mode & 0o077 or not has_password(url):
        return url, ""
    return url, "fdstore: warning: others can read the password in the file of --url-file; chmod 600 it"
