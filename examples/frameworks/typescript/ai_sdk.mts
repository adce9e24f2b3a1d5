// An agent of the Vercel AI SDK finds the error in a log of 60,000 lines, of which it reads two short parts.

import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createMCPClient, type MCPClient } from "@ai-sdk/mcp";
import { generateText, isStepCount } from "ai";

const { MCP_URL, MCP_TOKEN, ANTHROPIC_BASE_URL } = process.env;
assert(MCP_URL && MCP_TOKEN, "set MCP_URL and MCP_TOKEN");

const headers = { Authorization: `Bearer ${MCP_TOKEN}` };
let mcp: MCPClient;
try {
  mcp = await createMCPClient({ transport: { type: "http", url: MCP_URL, headers } });
} catch (error) {
  if ((error as { statusCode?: number }).statusCode !== 401) throw error;
  throw new Error(`${MCP_URL} refuses the token in MCP_TOKEN`, { cause: error });
}
try {
  const tools = await mcp.tools();
  console.log("tools:", ...Object.keys(tools).slice(0, 2), "...");

  // ANTHROPIC_BASE_URL is without /v1, as the SDKs of Anthropic read it
  const anthropic = createAnthropic(ANTHROPIC_BASE_URL ? { baseURL: `${ANTHROPIC_BASE_URL}/v1` } : {});
  const { text, steps } = await generateText({
    model: anthropic("claude-sonnet-5-5"),
    instructions: mcp.instructions, // what ids mean, and how parts are read
    prompt: "Why did the build fail? Its log is fd:1. Quote the line of the error.",
    tools,
    stopWhen: isStepCount(10),
  });
  for (const call of steps.flatMap((step) => step.toolCalls)) console.log(call.toolName, call.input);
  console.log(text);
  assert.match(text, /src\/module_839\.c:212/);
} finally {
  await mcp.close();
}
