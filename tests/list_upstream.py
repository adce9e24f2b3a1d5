"""An MCP server on standard input and output whose lists are given as its first argument says.

It needs the standard library only, so that `python -I -S` starts it fast. Each list has one item a page:
"a0", "a1" and so on. The prompt of any name says what the server was asked.

    whole      one page
    same       each page names the same next page
    empty      each page names the next page ""
    circle     pages name each other in a circle
    new        each page names another one
    never      no answer, nor to `initialize` with `mute`
    refuses    an error
    dies       one page that names another, and the end
    closes     one page that names another, and the end of its output
    late       one page, once its second argument, a pipe, is written to
"""

import json
import os
import sys
import threading

HOW = sys.argv[1]
FIELDS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
asked: list[dict] = []
lock = threading.Lock()


def write(message: dict) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def item(number: int) -> dict:
    name = f"a{number}"
    schema = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    return {"name": name, "uri": f"a:{name}", "uriTemplate": f"a:{name}/{{x}}", **schema}


def page(id: object, method: str, cursor: object) -> None:
    number = int(cursor) if isinstance(cursor, str) and cursor.isdigit() else 0
    following = {
        "same": "same",
        "empty": "",
        "circle": str((number + 1) % 3),
        "new": str(number + 1),
        "dies": "1",
        "closes": "1",
    }.get(HOW)
    if HOW == "never" or HOW == "mute":
        return
    if HOW == "refuses":
        write({"id": id, "error": {"code": -32603, "message": "out of order"}})
        return
    if cursor is not None and HOW == "dies":
        os._exit(3)
    if cursor is not None and HOW == "closes":
        os.close(1)
        return
    if HOW == "late":
        threading.Thread(target=late, args=(id, method)).start()
        return
    more = {} if following is None else {"nextCursor": following}
    write({"id": id, "result": {FIELDS[method]: [item(number)], **more}})


def late(id: object, method: str) -> None:
    with open(sys.argv[2]) as gate:
        gate.read()
    write({"id": id, "result": {FIELDS[method]: [item(0)]}})


for line in sys.stdin:
    message = json.loads(line)
    asked.append(message)
    params = message.get("params", {})
    match message.get("method"):
        case "initialize" if HOW != "mute":
            capabilities = {"tools": {}, "prompts": {}, "resources": {}}
            about = {"serverInfo": {"name": "lists", "version": "1"}, "capabilities": capabilities}
            write({"id": message["id"], "result": {"protocolVersion": "2025-11-25", **about}})
        case "tools/call":
            text = {"type": "text", "text": params["name"]}
            write({"id": message["id"], "result": {"content": [text]}})
        case "prompts/get":
            write({"id": message["id"], "result": {"asked": asked}})
        case method if method in FIELDS:
            page(message["id"], method, params.get("cursor"))
