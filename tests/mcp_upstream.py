"""A tiny MCP server on standard input and output, for tests of the gateway: a tool does what its name says.

It needs the standard library only, so that `python -I -S` starts it fast."""

import json
import os
import signal
import sys
import time

TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}
    for name in ("echo", "lines")
]


def answer(id: object, result: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\n")
    sys.stdout.flush()


def call(id: object, tool: str, arguments: dict) -> None:
    match tool:
        case "echo":
            answer(id, {"content": [{"type": "text", "text": arguments["text"]}]})
        case "lines":
            text = "".join(f"line {number}\n" for number in range(1, arguments["count"] + 1))
            answer(
                id, {"content": [{"type": "text", "text": text}], "isError": arguments.get("fails", False)}
            )
        case "megabytes":
            text = "0123456789abcde\\n" * (arguments["count"] << 16)
            sys.stdout.write(f'{{"id":{json.dumps(id)},"result":{{"content":[{{"type":"text","text":"')
            sys.stdout.write(text)
            sys.stdout.write('"}]}}\n')
            sys.stdout.flush()
        case "megabytes of rows":
            row = '{"id":12345,"name":"a name of a row","is_open":true,"tags":["a"]}'
            rows = ",".join([row] * ((arguments["count"] << 20) // len(row)))
            sys.stdout.write(f'{{"id":{json.dumps(id)},"result":{{"content":[],"structuredContent":')
            sys.stdout.write(f'{{"rows":[{rows}]}}}}}}\n')
            sys.stdout.flush()
        case "raw":
            sys.stdout.write(arguments["text"])
            sys.stdout.flush()
        case "log":
            sys.stderr.write("x" * arguments["count"] + "\n")
            sys.stderr.flush()
            answer(id, {})
        case "exit":
            os._exit(arguments["code"])
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "pid":
            answer(id, {"pid": os.getpid()})
        case "never":
            pass


def main() -> None:
    if "stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "tools/list":
                answer(message["id"], {"tools": TOOLS})
            case "tools/call":
                call(message["id"], message["params"]["name"], message["params"].get("arguments", {}))
            case "notifications/cancelled":
                answer(message["params"]["requestId"], {"cancelled": True})
            case "initialize":
                version = message["params"]["protocolVersion"]
                server = {"name": "upstream", "version": "1"}
                about = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
                answer(message["id"], about)
    if "stubborn" in sys.argv:
        while True:
            time.sleep(60)


main()
