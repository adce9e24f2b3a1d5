"""Start the service on a free port, and use it as a client would."""

import json
import threading
import time
from urllib.request import Request, urlopen

import uvicorn
from service import app

QUESTION = {"question": "When was sensor 7 too hot? Its normal range is 18 to 24 degrees."}


def use(address: str) -> None:
    with urlopen(f"{address}/questions", json.dumps(QUESTION).encode()) as response:
        asked = json.load(response)

    with urlopen(address + asked["progress"]) as progress:  # while the agent works
        for line in progress:
            print(line.decode(), end="")

    # the measurements, which the agent's tool returned: fd:1 is the progress
    part = Request(f"{address}{asked['contents']}/fd:2", headers={"Range": "bytes=0-42"})
    with urlopen(part) as response:
        print(f"\n{response.status} {response.headers['Content-Range']}\n{response.read().decode()}")


def main() -> None:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.05)
    try:
        use(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
