// The MCP SDK: a text of 60,000 lines is stored, and of it one line is found and two parts are read.

import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

const { MCP_URL, MCP_TOKEN } = process.env;
assert(MCP_URL && MCP_TOKEN, "set MCP_URL and MCP_TOKEN");

const client = new Client({ name: "build", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
const authProvider = { token: async () => MCP_TOKEN };
try {
  await client.connect(new StreamableHTTPClientTransport(new URL(MCP_URL), { authProvider }));
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
  throw new Error(`${MCP_URL} refuses the token in MCP_TOKEN`, { cause: error });
}

async function call(name: string, args: Record<string, unknown>): Promise<string> {
  const { content, isError } = await client.callTool({ name, arguments: args });
  const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
  if (isError) throw new Error(text);
  return text;
}

const { tools } = await client.listTools();
console.log("tools:", ...tools.slice(0, 2).map((tool) => tool.name), "...");

const lines = Array.from({ length: 60_000 }, (_, index) => `line ${index + 1} of the build\n`);
const fd = /fd="(fd:\d+)"/.exec(await call("put_fd", { text: lines.join("") }))?.[1];
console.log(await call("search_fd", { fd, pattern: "line 41877 " }));
console.log(await call("read_fd", { fd: `${fd}#L41876-41878` }));

const page = await call("read_fd", { fd: `${fd}#P2` });
const text = page.slice(page.indexOf(">\n") + 2, page.lastIndexOf("\n</fd_content>"));
assert(lines.join("").includes(text), "page 2 is a part of the text");
console.log(`page 2 has ${text.length} characters`);
await client.close();
