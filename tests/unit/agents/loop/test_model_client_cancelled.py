"""Requests to the model that the caller gives up: the connection is closed, whatever the model does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from fdstore.agents.loop.models.anthropic import AnthropicModel
from fdstore.agents.loop.models.base import ModelFailed
from tests.unit.agents.loop.model_client import ClientUnderTest
from tests.waiting import PATIENCE_S, wait_until

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message",'
    b'"role":"assistant","model":"any","content":[],"stop_reason":null,"stop_sequence":null,'
    b'"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
)
BEGUN = HEAD + b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
SILENT = b""


class GivenUp(Exception):
    pass


class SilentModel:
    """A server that receives a request, sends the beginning of an answer, and waits for the client to hang
    up."""

    def __init__(self, beginning: bytes) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._beginning = beginning
        self.port = self._listener.getsockname()[1]
        self.received = threading.Event()
        self.hung_up = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with self._listener.accept()[0] as connection:
            connection.settimeout(PATIENCE_S)
            while b"Hello" not in connection.recv(65_536):
                pass
            connection.sendall(self._beginning)
            self.received.set()
            try:
                hung_up = connection.recv(65_536) == b""
            except ConnectionResetError:  # it hung up before it read all of the beginning
                hung_up = True
            if hung_up:
                self.hung_up.set()

    def close(self) -> None:
        self._thread.join()
        self._listener.close()


class Deltas:
    """A listener of the text that arrives."""

    def __init__(self) -> None:
        self.events = 0

    def on_text(self, _: str) -> None:
        self.events += 1

    def on_retry(self) -> None:
        return


@contextmanager
def silent_model(beginning: bytes) -> Iterator[tuple[SilentModel, ClientUnderTest]]:
    with closing(SilentModel(beginning)) as server:
        client = AnthropicModel(api_key="k", base_url=f"http://127.0.0.1:{server.port}")
        with closing(client):
            yield server, ClientUnderTest(client)


def give_up_when(happened: Callable[[], bool], error: type[BaseException] = GivenUp) -> Callable[[], None]:
    def check() -> None:
        if happened():
            raise error

    return check


@pytest.mark.parametrize("listener", [None, Deltas()], ids=["unheard", "streamed"])
@pytest.mark.parametrize("beginning", [SILENT, BEGUN], ids=["before the answer", "in mid-answer"])
@pytest.mark.parametrize("error", [GivenUp, KeyboardInterrupt])
def test_a_request_that_is_given_up_is_ended_while_the_model_is_silent(
    beginning: bytes, listener: Any, error: type[BaseException]
) -> None:
    with silent_model(beginning) as (server, client):
        with pytest.raises(error):
            client.query(check=give_up_when(server.received.is_set, error), listener=listener)

        wait_until(server.hung_up.is_set, what="the end of the connection")


def test_an_exception_of_the_listener_ends_the_request() -> None:
    class Full(Deltas):
        def on_text(self, _: str) -> None:
            raise GivenUp

    with silent_model(BEGUN) as (server, client):
        with pytest.raises(GivenUp):
            client.query(listener=Full())

        wait_until(server.hung_up.is_set, what="the end of the connection")


def test_closing_the_client_ends_its_requests() -> None:
    with silent_model(SILENT) as (server, client):
        failed: list[str] = []

        def query() -> None:
            try:
                client.query()
            except ModelFailed as error:
                failed.append(str(error))

        asking = threading.Thread(target=query)
        asking.start()
        assert server.received.wait(PATIENCE_S)
        client.model.close()
        asking.join(PATIENCE_S)

        assert failed == ["the client of the model was closed"]
        wait_until(server.hung_up.is_set, what="the end of the connection")


def test_a_closed_client_refuses_requests_at_once() -> None:
    client = AnthropicModel(api_key="k", base_url="http://127.0.0.1:9")
    client.close()

    with pytest.raises(ModelFailed, match="the client of the model was closed"):
        ClientUnderTest(client).query()
