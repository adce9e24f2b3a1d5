"""A TLS proxy in front of a server without TLS, as a data center might run it."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path

import trustme


class Authority:
    """A private certificate authority and a server certificate, by default for all names of this machine."""

    def __init__(self, folder: Path, *names: str) -> None:
        authority = trustme.CA()
        self.file = folder / "ca.pem"
        authority.cert_pem.write_to_path(str(self.file))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*(names or ("127.0.0.1", "localhost"))).configure_cert(self.context)


class TlsProxy:
    """A proxy that accepts TLS on its own port and forwards to the port `behind`: a context manager.

    Replaces `names` in replies, so that a Sentinel names the proxy of its primary.
    """

    def __init__(self, authority: Authority, behind: int, names: dict[bytes, bytes] | None = None) -> None:
        self._context = authority.context
        self._behind = behind
        self._names = names or {}
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []

    def __enter__(self) -> TlsProxy:
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listening, *self._open):
            _end(each)

    def _listen(self) -> None:
        with self._listening:
            while True:
                try:
                    plain, _ = self._listening.accept()
                except OSError:
                    return
                threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            outside = self._context.wrap_socket(plain, server_side=True)
        except OSError:
            plain.close()
            return
        with outside, suppress(OSError), socket.create_connection(("127.0.0.1", self._behind)) as inside:
            self._open += [outside, inside]
            requests = threading.Thread(target=self._pump, args=(outside, inside, {}), daemon=True)
            requests.start()
            self._pump(inside, outside, self._names)
            requests.join()

    def _pump(self, source: socket.socket, target: socket.socket, names: dict[bytes, bytes]) -> None:
        try:
            while piece := source.recv(65536):
                for name, other in names.items():
                    piece = piece.replace(name, other)
                target.sendall(piece)
        except OSError:
            pass  # the other side is gone
        finally:
            _end(source)
            _end(target)


def _end(end: socket.socket) -> None:
    """End a connection, which its thread closes then. Closed under it, the number would become another file,
    to which TLS writes its alert."""
    with suppress(OSError):
        socket.socket.shutdown(end, socket.SHUT_RDWR)
