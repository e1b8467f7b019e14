// openai-node with nothing but its base URL and key changed.
// usage: NODE_MODULES=FOLDER node openai_node.mjs BASE_URL KEY

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_MODULES}/`);
const { OpenAI } = require("openai");
const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const ask = { model: "tiny", messages: [{ role: "user", content: "Where to?" }], max_tokens: 8 };

const answer = await client.chat.completions.create(ask);
assert.equal(answer.usage.completion_tokens, 8);

let text = "";
for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
  assert.ok(!chunk.usage, "usage that was not asked for");
  text += chunk.choices[0].delta.content ?? "";
}
assert.ok(text);

let usage;
const stream_options = { include_usage: true };
for await (const chunk of await client.chat.completions.create({ ...ask, stream: true, stream_options })) {
  usage = chunk.usage ?? usage;
}
assert.equal(usage.completion_tokens, 8);

const response = await client.responses.create({ model: "tiny", input: "Where to?", max_output_tokens: 8 });
assert.equal(response.usage.output_tokens, 8);

const embeddings = await client.embeddings.create({ model: "tiny", input: "Where to?" });
assert.equal(embeddings.data.length, 1);
