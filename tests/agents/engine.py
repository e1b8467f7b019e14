"""A scripted engine: it answers on the wires of OpenAI, Anthropic and Gemini with text and usage that the test knows.

Each call of a model gets numbers of its own, so that a record can be held against the answer that it is of. The prompt
`DELEGATES` is answered with a call of the client's own tool for sub-agents, where it has one.
"""

import contextlib
import http.server
import itertools
import json
import re
import threading

TEXT = "Hello."
DELEGATES = "Have a helper say hello"
# What a sub-agent is asked.
TASK = "Answer with one word."
# Longest that an answer waits for the one of a sub-agent.
WAIT_SECONDS_MAX = 60
# The tools for sub-agents, by wire and by name in the client.
TOOLS = {
    ("responses", "spawn_agent"): {"message": TASK},
    ("messages", "Agent"): {"description": "one word", "prompt": TASK, "subagent_type": "general-purpose",
                            "run_in_background": False},
    ("responses", "task"): {"description": "one word", "prompt": TASK, "subagent_type": "general"},
    ("chat", "task"): {"description": "one word", "prompt": TASK, "subagent_type": "general"},
}
MODELS = ["claude-haiku-4-5", "gemini-2.5-flash", "gpt-5.4-mini"]


def texts(content):
    """The texts of a message."""
    if isinstance(content, str):
        return [content]
    return [part.get("text") or "" for part in content or []]


def asked(items):
    """What the user asks, and whether a tool has answered. Clients say more in that role, before and after."""
    if isinstance(items, str):
        return items, False
    prompt, answered = [], False
    for item in items:
        content = item.get("content") or item.get("parts") or []
        kinds = {item.get("type"), *(part.get("type") for part in content if isinstance(part, dict))}
        answered |= item.get("role") == "tool" or bool({"function_call_output", "tool_result"} & kinds)
        if item.get("role") == "user":
            prompt += texts(content)
    return "\n".join(prompt), answered


def compacts(items):
    """Whether a shorter context is asked for, and nothing else."""
    return isinstance(items, list) and items[-1:] == [{"type": "compaction_trigger"}]


def tool_of(wire, body):
    """The client's tool for sub-agents, with what it is called with."""
    offered = json.dumps(body.get("tools") or [])
    for (at, name), arguments in TOOLS.items():
        if at == wire and f'"{name}"' in offered:
            return name, arguments
    return None


def responses(told, stream):
    done = {"id": told["id"], "object": "response", "created_at": 1, "model": told["model"], "status": "completed",
            "output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None,
            "usage": {"input_tokens": told["input"], "input_tokens_details": {"cached_tokens": told["cached"]},
                      "output_tokens": told["output"], "output_tokens_details": {"reasoning_tokens": 0},
                      "total_tokens": told["input"] + told["output"]}}
    begun = {**done, "status": "in_progress", "usage": None}
    if told["tool"]:
        name, arguments = told["tool"]
        item = {"type": "function_call", "id": f"fc_{told['id']}", "call_id": f"call_{told['id']}", "name": name,
                "namespace": "multi_agent_v1", "arguments": json.dumps(arguments), "status": "completed"}
    elif told["compacts"]:
        item = {"type": "compaction", "id": f"cmp_{told['id']}", "encrypted_content": "c2hvcnRlcg=="}
    else:
        item = {"type": "message", "id": f"msg_{told['id']}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": TEXT, "annotations": []}]}
    done["output"] = [item]
    if not stream:
        return done
    events = [("response.created", {"response": begun}),
              ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress"}})]
    if item["type"] == "message":
        events.append(("response.output_text.delta", {"item_id": item["id"], "output_index": 0, "content_index": 0,
                                                      "delta": TEXT, "logprobs": []}))
    events += [("response.output_item.done", {"output_index": 0, "item": item}),
               ("response.completed", {"response": done})]
    return [(kind, {"type": kind, "sequence_number": number, **event}) for number, (kind, event) in enumerate(events)]


def messages(told, stream):
    usage = {"input_tokens": told["input"] - told["cached"], "cache_read_input_tokens": told["cached"],
             "cache_creation_input_tokens": 0, "output_tokens": told["output"]}
    if told["tool"]:
        name, arguments = told["tool"]
        block = {"type": "tool_use", "id": f"toolu_{told['id']}", "name": name, "input": arguments}
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    else:
        block, empty, delta = {"type": "text", "text": TEXT}, {"type": "text", "text": ""}, {
            "type": "text_delta", "text": TEXT}
    whole = {"id": told["id"], "type": "message", "role": "assistant", "model": told["model"], "content": [block],
             "stop_reason": "tool_use" if told["tool"] else "end_turn", "stop_sequence": None, "usage": usage}
    if not stream:
        return whole
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events = [{"type": "message_start", "message": begun},
              {"type": "content_block_start", "index": 0, "content_block": empty},
              {"type": "content_block_delta", "index": 0, "delta": delta},
              {"type": "content_block_stop", "index": 0},
              {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
               "usage": {"output_tokens": told["output"]}},
              {"type": "message_stop"}]
    return [(event["type"], event) for event in events]


def chat(told, stream):
    usage = {"prompt_tokens": told["input"], "completion_tokens": told["output"],
             "total_tokens": told["input"] + told["output"],
             "prompt_tokens_details": {"cached_tokens": told["cached"]}}
    message, reason = {"role": "assistant", "content": TEXT}, "stop"
    if told["tool"]:
        name, arguments = told["tool"]
        call = {"index": 0, "id": f"call_{told['id']}", "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)}}
        message, reason = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    head = {"id": told["id"], "created": 1, "model": told["model"]}
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    head["object"] = "chat.completion.chunk"
    chunks = [{**head, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
              {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
              {**head, "choices": [], "usage": usage}]
    return [(None, chunk) for chunk in chunks] + [(None, "[DONE]")]


def generate(told, stream):
    whole = {"candidates": [{"content": {"role": "model", "parts": [{"text": TEXT}]}, "finishReason": "STOP",
                             "index": 0}],
             "usageMetadata": {"promptTokenCount": told["input"], "cachedContentTokenCount": told["cached"],
                               "candidatesTokenCount": told["output"],
                               "totalTokenCount": told["input"] + told["output"]},
             "modelVersion": told["model"], "responseId": told["id"]}
    return [(None, whole)] if stream else whole


# How the path of a call of a model ends, what its wire is called, where its prompt stands, and who answers.
WIRES = [
    (r"/responses", "responses", "input", responses),
    (r"/messages", "messages", "messages", messages),
    (r"/chat/completions", "chat", "messages", chat),
    (r":(?:streamG|g)enerateContent", "generate", "contents", generate),
]


class Engine:
    """What it was asked, and what it told."""

    def __init__(self):
        self.numbers = itertools.count(1)
        # What it told of each call of a model.
        self.told = []
        # Every request: method, path, and the status of its answer.
        self.seen = []
        self.helped = {wire: threading.Event() for _, wire, _, _ in WIRES}

    def answer(self, path, body):
        """The answer of a model, or None."""
        for end, wire, where, write in WIRES:
            if not re.search(f"{end}$", path):
                continue
            number = next(self.numbers)
            model = body.get("model") or re.search(r"models/([^/:]+)", path)[1]
            stream = body.get("stream", False) or "stream" in path
            told = {"id": f"{wire}-{number}", "wire": wire, "model": model, "tool": None, "compacts": compacts(body.get("input")),
                    "input": 1000 + 3 * number, "cached": 100 + number, "output": 10 + 2 * number}
            prompt, answered = asked(body[where])
            if DELEGATES in prompt and not answered:
                told["tool"] = tool_of(wire, body)
            elif DELEGATES in prompt:
                self.helped[wire].wait(WAIT_SECONDS_MAX)
            self.told.append(told)
            if TASK in prompt:
                self.helped[wire].set()
            return write(told, stream)
        return None


def handler(engine):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self, status, content, kind="application/json"):
            engine.seen.append((self.command, self.path, status))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def do_GET(self):
            if not self.path.split("?")[0].endswith("/models"):
                return self.reply(404, b'{"error": {"message": "not here"}}')
            data = [{"id": model, "object": "model"} for model in MODELS]
            return self.reply(200, json.dumps({"object": "list", "data": data}).encode())

        def do_HEAD(self):
            self.reply(200, b"")

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            path = self.path.split("?")[0]
            if "count" in path or path.endswith("/input_tokens"):
                return self.reply(200, b'{"input_tokens": 11, "totalTokens": 11}')
            answer = engine.answer(path, body)
            if answer is None:
                return self.reply(404, b'{"error": {"message": "not here"}}')
            if isinstance(answer, dict):
                return self.reply(200, json.dumps(answer).encode())
            lines = []
            for kind, event in answer:
                event = event if isinstance(event, str) else json.dumps(event)
                lines.append((f"event: {kind}\n" if kind else "") + f"data: {event}\n\n")
            return self.reply(200, "".join(lines).encode(), "text/event-stream")

        def log_message(self, *_):
            pass

    return Handler


@contextlib.contextmanager
def serving():
    """The engine, and its address."""
    engine = Engine()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(engine))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield engine, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
