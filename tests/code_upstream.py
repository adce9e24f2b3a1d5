"""A tiny MCP server on standard input and output, for programs of a gateway's host.

It needs the standard library only, so that `python -I -S` starts it fast. The variable ODD is JSON, or what
is none, in the schema and the result of its tool `odd`."""

import json
import os
import sys

READS = {"annotations": {"readOnlyHint": True}}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def tool(name: str, given: dict, **more: object) -> dict:
    return {"name": name, "description": f"The tool {name}.\n\nMore of it.", "inputSchema": given, **more}


def numbers(*names: str) -> dict:
    return {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": list(names),
    }


TOOLS = [
    tool("echo", TEXT, **READS),
    tool("together", numbers("number", "of"), **READS),
    tool("get-rows", numbers("count"), outputSchema={"type": "object"}, **READS),
    tool("get-list", numbers("count"), outputSchema=numbers("result"), **READS),
    tool("lines", numbers("count"), **READS),
    tool("megabytes", numbers("count"), **READS),
    tool("picture", {"type": "object"}, **READS),
    tool("search_files", {"type": "object"}, **READS),
    tool("read_text_file", {"type": "object"}, **READS),
    tool("fails", TEXT, **READS),
    tool("breaks", {"type": "object"}, **READS),
    tool("fails-with", {"type": "object"}, **READS),
    tool("asks", {"type": "object"}, **READS),
    tool("never", {"type": "object"}, **READS),
    tool("exit", {"type": "object"}, **READS),
    tool("requests", {"type": "object"}, **READS),
    tool("name", {"type": "object"}, **READS),
    tool("grow", {"type": "object"}, **READS),
    tool("remove", TEXT),
]
LATER = tool("grown", {"type": "object"}, **READS)

ODD = os.environ.get("ODD")
if ODD is not None:
    TOOLS.append(tool("odd", {"type": "object", "default": "ODD"}, **READS))

seen: list[dict] = []
waiting: dict[int, object] = {}
asking: list[object] = []


def write(message: dict) -> None:
    line = json.dumps({"jsonrpc": "2.0", **message})
    sys.stdout.write((line if ODD is None else line.replace('"ODD"', ODD)) + "\n")
    sys.stdout.flush()


def answer(id: object, result: object) -> None:
    write({"id": id, "result": result})


def say(id: object, *texts: str, **more: object) -> None:
    answer(id, {"content": [{"type": "text", "text": text} for text in texts], **more})


def call(id: object, name: str, arguments: dict, meta: dict) -> None:
    match name:
        case "echo":
            say(id, arguments["text"])
        case "together":  # answers once so many calls have come
            waiting[arguments["number"]] = id
            if "progressToken" in meta:
                token = {"progressToken": meta["progressToken"], "progress": 1, "total": 2}
                write({"method": "notifications/progress", "params": token})
            if len(waiting) == arguments["of"]:
                for number, each in sorted(waiting.items(), reverse=True):
                    say(each, str(number))
                waiting.clear()
        case "get-rows":
            rows = [{"number": number} for number in range(arguments["count"])]
            answer(id, {"content": [], "structuredContent": {"rows": rows}})
        case "get-list":
            items = list(range(arguments["count"]))
            answer(id, {"content": [], "structuredContent": {"result": items}})
        case "lines":
            say(id, "".join(f"line {number}\n" for number in range(1, arguments["count"] + 1)))
        case "megabytes":
            text = "0123456789abcde\\n" * (arguments["count"] << 16)
            sys.stdout.write(f'{{"id":{json.dumps(id)},"result":{{"content":[{{"type":"text","text":"')
            sys.stdout.write(text)
            sys.stdout.write('"}]}}\n')
            sys.stdout.flush()
        case "picture":
            picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
            answer(id, {"content": [{"type": "text", "text": "a picture"}, picture]})
        case "search_files":
            say(id, "a.log\nb.log")
        case "read_text_file":  # 5 MB
            lines = (f"{number} {'fine' if number % 4 else 'ERROR'}\n" for number in range(400_000))
            say(id, "".join(lines))
        case "fails":
            say(id, arguments["text"], isError=True)
        case "fails-with":  # the result, or the error
            write({"id": id, **arguments})
        case "breaks":
            write({"id": id, "error": {"code": -32603, "message": "out of order"}})
        case "asks":
            asking.append(id)
            params = {"message": "Which day?", "requestedSchema": {"type": "object", "properties": {}}}
            write({"id": "ask-1", "method": "elicitation/create", "params": params})
        case "odd":
            answer(id, {"content": [], "structuredContent": {"odd": "ODD"}})
        case "exit":
            os._exit(3)
        case "requests":
            say(id, json.dumps(seen))
        case "name":
            say(id, os.environ.get("NAME", ""))
        case "grow":
            TOOLS.append(LATER)
            write({"method": "notifications/tools/list_changed"})
            say(id, "grown")
        case "remove" | "grown":
            say(id, "done")


def main() -> None:
    if gate := os.environ.get("GATE"):
        with open(gate) as file:  # a pipe: it waits for whoever writes
            file.read()
    for line in sys.stdin:
        message = json.loads(line)
        seen.append(message)
        params = message.get("params", {})
        match message.get("method"):
            case "tools/list":  # in pages of ten
                begin = int(params.get("cursor", 0))
                more = {"nextCursor": str(begin + 10)} if begin + 10 < len(TOOLS) else {}
                answer(message["id"], {"tools": TOOLS[begin : begin + 10], **more})
            case "tools/call":
                call(message["id"], params["name"], params.get("arguments", {}), params.get("_meta", {}))
            case "initialize":
                about = {"name": "upstream", "version": "1"}
                result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
                answer(message["id"], {**result, "serverInfo": about})
            case None if message.get("id") == "ask-1":
                say(asking.pop(), json.dumps(message["result"]))


main()
