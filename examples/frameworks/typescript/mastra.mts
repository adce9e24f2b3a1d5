// An agent of Mastra finds the error in a log of 60,000 lines, of which it reads two short parts.

import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { Agent } from "@mastra/core/agent";
import type { MastraModelConfig } from "@mastra/core/llm";
import { MCPClient } from "@mastra/mcp";

const { MCP_URL, MCP_TOKEN, ANTHROPIC_BASE_URL } = process.env;
assert(MCP_URL && MCP_TOKEN, "set MCP_URL and MCP_TOKEN");

const requestInit = { headers: { Authorization: `Bearer ${MCP_TOKEN}` } };
// the server's instructions say what ids mean, and how parts are read
const guide = { forwardInstructions: true, instructionsMaxLength: 4000 };
const mcp = new MCPClient({ servers: { fdstore: { url: new URL(MCP_URL), requestInit, ...guide } } });
try {
  const { tools, errors, errorDetails } = await mcp.listToolsWithErrors();
  if (errorDetails.fdstore?.httpStatus === 401) throw new Error(`${MCP_URL} refuses the token in MCP_TOKEN`);
  if (errors.fdstore) throw new Error(errors.fdstore);
  console.log("tools:", ...Object.keys(tools).slice(0, 2), "...");

  // without this Mastra shows the model each result as JSON, with its lines escaped
  type Part = { type: "text"; text: string } | { type: "image"; data: string; mimeType: string };
  for (const tool of Object.values(tools)) {
    tool.toModelOutput = ({ content }: { content: Part[] }) => ({
      type: "content",
      value: content.map((part) =>
        part.type === "text" ? part : { type: "image-data", data: part.data, mediaType: part.mimeType },
      ),
    });
  }

  // ANTHROPIC_BASE_URL is without /v1, as the SDKs of Anthropic read it
  const anthropic = createAnthropic(ANTHROPIC_BASE_URL ? { baseURL: `${ANTHROPIC_BASE_URL}/v1` } : {});
  const agent = new Agent({
    id: "build",
    name: "Build",
    instructions: "You find out why builds fail.",
    model: anthropic("claude-sonnet-5-5") as MastraModelConfig, // its types are older
    tools,
  });
  const prompt = "Why did the build fail? Its log is fd:1. Quote the line of the error.";
  const { text, toolCalls } = await agent.generate(prompt, { maxSteps: 10 });
  for (const { payload } of toolCalls) console.log(payload.toolName, payload.args);
  console.log(text);
  assert.match(text, /src\/module_839\.c:212/);
} finally {
  await mcp.disconnect();
}
