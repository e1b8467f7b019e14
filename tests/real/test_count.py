"""What `taximeter count` makes of prompts by the model's own files, against what the engine makes of them."""

import json
import subprocess
import urllib.request

import pytest

from conftest import BINARY, key_of

CHATS = [
    {"messages": [{"role": "user", "content": "Where to?"}]},
    {
        "messages": [
            {"role": "system", "content": "Be brief.\n\n  And kind."},
            {"role": "user", "content": "Une caf\u00e9, s'il vous pla\u00eet \u2013 \U0001f695 \u65e5\u672c\u8a9e"},
            {"role": "assistant", "content": "<|im_end|> is no mark here, 12345 either"},
            {"role": "user", "content": "    indented\n\n\n\tand tabbed   "},
        ]
    },
    {"messages": [{"role": "user", "content": "again and " * 300}]},
]
TEXTS = ["hello world", "Une caf\u00e9 \u2013 \U0001f695", "<|im_start|>", "\n\n   x\t" * 40]


def count(*words: str, given: str) -> tuple[int, list[str]]:
    """The exit code, and the lines that were printed."""
    command = [BINARY, "count", *words]
    ended = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
    assert ended.returncode in (0, 1), ended.stderr
    return ended.returncode, ended.stdout.splitlines()


@pytest.mark.parametrize("chat", CHATS, ids=range(len(CHATS)))
def test_a_chat_counts_as_the_engine_bills_it(engine, gateway, model, chat):
    body = json.dumps({"model": "tiny", "max_tokens": 1, **chat})
    # Through the gateway: the engine's counters are held against the ledger later.
    headers = {"content-type": "application/json", "authorization": f"Bearer {key_of('openai-python')}"}
    request = urllib.request.Request(f"{gateway.url}/v1/chat/completions", body.encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        usage = json.load(answer)["usage"]
    code, [ours, theirs, difference] = count("--tokenizer", str(model), "--against", engine, given=body)
    assert ours.startswith(f"{usage['prompt_tokens']} tokens  (request, ") and "exact" in ours
    assert theirs.startswith(f"{usage['prompt_tokens']} tokens  (llama.cpp at ")
    assert (code, difference) == (0, "+0 difference")


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_counts_as_the_engine_tokenises_it(engine, model, text):
    code, [ours, _, difference] = count("--tokenizer", str(model), "--against", engine, given=text)
    assert (code, difference) == (0, "+0 difference"), ours


def test_another_vocabulary_is_told_apart(engine):
    code, lines = count("--model", "gpt-4o", "--against", engine, given="hello world " * 50)
    assert code == 1 and not lines[2].startswith("+0"), lines


def test_an_engine_that_is_not_there_is_unavailable(model):
    command = [BINARY, "count", "--tokenizer", str(model), "--against", "http://127.0.0.1:1"]
    ended = subprocess.run(command, input="hello", capture_output=True, text=True, timeout=60)
    assert ended.returncode == 69, ended.stderr
    assert "127.0.0.1:1" in ended.stderr
