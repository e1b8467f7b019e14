"""Requests of many shapes, the same for the same seed."""

import dataclasses
import random

WORDS = (
    "taxi meter fare rain street turn left night bridge airport station ticket count token price "
    "hour wheel driver yellow light слово такси 出租车 費用 가격 ταξί été naïve coöperate 🚕 🌧️ {\"a\": [1, 2]} "
    "fn main() { println!(\"x\"); } 3.14159 1234567890 … — 'll we've \n\n \t"
).split(" ")


@dataclasses.dataclass
class Shape:
    """One request, and what is done with its answer."""

    kind: str  # chat, completions, messages, responses, embeddings
    path: str
    body: dict
    stream: bool
    leaves_after: int | None = None  # the client leaves behind so many events

    @property
    def name(self) -> str:
        manner = "leaves" if self.leaves_after is not None else "stream" if self.stream else "whole"
        if self.stream and self.kind in ("chat", "completions") and self.leaves_after is None:
            manner += "+usage" if "stream_options" in self.body else ""
        choices = f" n={self.body['n']}" if self.body.get("n", 1) > 1 else ""
        return f"{self.kind} {manner}{choices}"


def text(random: random.Random, words_max: int = 300) -> str:
    words = min(int(random.expovariate(1 / 40)) + 1, words_max)
    return " ".join(random.choices(WORDS, k=words))


def turns(random: random.Random) -> list[dict]:
    roles = ["user", "assistant"] * 3
    count = random.choice([1, 1, 3, 5])
    # The engines read no more than 2,048 tokens of a prompt.
    words_max = 240 // (count + 1)
    messages = [{"role": role, "content": text(random, words_max)} for role in roles[:count]]
    if random.random() < 0.4:
        messages.insert(0, {"role": "system", "content": text(random, words_max)})
    return messages


def shape(random: random.Random, kinds: list[str], models: list[str]) -> Shape:
    """One of `kinds`, for one of `models`."""
    kind = random.choice(kinds)
    body = {"model": random.choice(models)}
    if kind == "embeddings":
        # llama.cpp embeds no more than a batch of 512 tokens.
        inputs = [text(random, words_max=60) for _ in range(random.choice([1, 1, 2, 5]))]
        return Shape(kind, "/v1/embeddings", body | {"input": inputs}, stream=False)

    tokens = random.choice([1, 2, 3, 8, 16, 33, 64])
    stream = random.random() < 0.65
    body |= {"stream": stream, "temperature": random.choice([0, 1])}
    match kind:
        case "chat":
            body |= {"messages": turns(random), "max_tokens": tokens}
        case "completions":
            body |= {"prompt": text(random), "max_tokens": tokens}
        case "messages":
            chat = [m for m in turns(random) if m["role"] != "system"]
            body |= {"messages": chat, "max_tokens": tokens, "system": text(random, words_max=60)}
        case "responses":
            body |= {"input": text(random), "max_output_tokens": max(tokens, 16)}
    leaves = stream and tokens >= 16 and random.random() < 0.25
    if kind in ("chat", "completions"):
        if random.random() < 0.1 and not leaves:
            # vLLM refuses two equal answers.
            body |= {"n": 2, "temperature": 1}
        if stream and not leaves and random.random() < 0.5:
            body["stream_options"] = {"include_usage": True}
    path = "/v1/chat/completions" if kind == "chat" else f"/v1/{kind}"
    return Shape(kind, path, body, stream, random.randint(3, tokens // 2) if leaves else None)
