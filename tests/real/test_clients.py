"""Real clients with nothing but their base URL and key changed."""

import asyncio
import os
import pathlib
import subprocess

import anthropic
import langchain_openai
import openai
import pytest

from conftest import key_of

HERE = pathlib.Path(__file__).parent
ASK = [{"role": "user", "content": "Where to?"}]


@pytest.fixture
def client(gateway):
    return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=key_of("openai-python"), max_retries=0)


@pytest.fixture
def claude(gateway):
    return anthropic.Anthropic(base_url=gateway.url, api_key=key_of("anthropic"), max_retries=0)


def test_openai_python_lists_models(client):
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_openai_python_chats(client):
    answer = client.chat.completions.create(model="tiny", messages=ASK, max_tokens=8)
    assert answer.choices[0].message.content
    assert answer.usage.completion_tokens == 8


def test_openai_python_streams_and_sees_no_usage_that_it_did_not_ask_for(client):
    stream = client.chat.completions.create(model="tiny", messages=ASK, max_tokens=9, stream=True)
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks)
    assert chunks[-1].choices[0].finish_reason == "length"
    assert all(c.usage is None for c in chunks)


def test_openai_python_streams_with_the_usage_that_it_asked_for(client):
    stream = client.chat.completions.create(
        model="tiny", messages=ASK, max_tokens=9, stream=True, stream_options={"include_usage": True}
    )
    last = list(stream)[-1]
    assert last.choices == []
    assert last.usage.completion_tokens == 9


def test_openai_python_completes(client):
    answer = client.completions.create(model="tiny", prompt="Once upon a time", max_tokens=6)
    assert answer.usage.completion_tokens == 6


def test_openai_python_streams_completions(client):
    stream = client.completions.create(model="tiny", prompt="Once upon", max_tokens=6, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream)


def test_openai_python_uses_responses(client):
    answer = client.responses.create(model="tiny", input="Where to?", max_output_tokens=7)
    assert answer.output_text
    assert answer.usage.output_tokens == 7


def test_openai_python_streams_responses(client):
    stream = client.responses.create(
        model="tiny", input="Where to now?", max_output_tokens=7, stream=True
    )
    assert list(stream)[-1].type == "response.completed"


def test_openai_python_embeds(client):
    answer = client.embeddings.create(model="tiny", input=["Once upon a time", "there was"])
    assert len(answer.data) == 2
    assert answer.usage.prompt_tokens > 0


def test_openai_python_streams_many_at_once(gateway):
    async def run():
        client = openai.AsyncOpenAI(
            base_url=f"{gateway.url}/v1", api_key=key_of("openai-python"), max_retries=0
        )

        async def one(number):
            ask = [{"role": "user", "content": f"Passenger {number}"}]
            stream = await client.chat.completions.create(
                model="tiny", messages=ask, max_tokens=number, stream=True
            )
            return [chunk async for chunk in stream]

        return await asyncio.gather(*(one(number) for number in range(5, 15)))

    assert all(chunks[-1].choices[0].finish_reason for chunks in asyncio.run(run()))


def test_openai_python_gets_the_engines_own_error(client):
    with pytest.raises(openai.APIStatusError) as refusal:
        client.chat.completions.create(model="tiny", messages=ASK, max_tokens="many")
    assert refusal.value.status_code == 400


def test_openai_python_is_told_that_its_key_is_wrong(gateway):
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="sk-wrong")
    with pytest.raises(openai.AuthenticationError) as refusal:
        client.chat.completions.create(model="tiny", messages=ASK)
    assert refusal.value.code == "invalid_api_key"


def test_openai_python_is_told_that_the_model_is_unknown(client):
    with pytest.raises(openai.NotFoundError) as refusal:
        client.chat.completions.create(model="giant", messages=ASK)
    assert refusal.value.code == "model_not_found"


def test_anthropic_messages(claude):
    answer = claude.messages.create(model="tiny", messages=ASK, max_tokens=8)
    assert answer.content[0].text
    assert answer.usage.output_tokens == 8


def test_anthropic_streams(claude):
    with claude.messages.stream(model="tiny", messages=ASK, max_tokens=8) as stream:
        text = "".join(stream.text_stream)
        answer = stream.get_final_message()
    assert text
    assert answer.usage.output_tokens == 8


def test_anthropic_is_told_in_its_own_words_that_its_key_is_wrong(gateway):
    claude = anthropic.Anthropic(base_url=gateway.url, api_key="sk-wrong")
    with pytest.raises(anthropic.AuthenticationError) as refusal:
        claude.messages.create(model="tiny", messages=ASK, max_tokens=8)
    assert refusal.value.body["type"] == "error"


def test_langchain_invokes_and_streams(gateway):
    chat = langchain_openai.ChatOpenAI(
        base_url=f"{gateway.url}/v1", api_key=key_of("langchain"), model="tiny", max_tokens=8, max_retries=0
    )
    assert chat.invoke("Where to?").usage_metadata["output_tokens"] == 8
    chunks = list(chat.stream("And then?"))
    assert "".join(str(chunk.content) for chunk in chunks)


def test_openai_node(gateway):
    subprocess.run(
        ["node", HERE / "openai_node.mjs", f"{gateway.url}/v1", key_of("openai-node")],
        check=True,
        env=os.environ,
        timeout=60,
    )


def test_no_request_is_lost_when_the_engine_closes_its_kept_connections(gateway):
    # llama.cpp closes a connection after its hundredth request.
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=key_of("keep-alive"), max_retries=0)
    for _ in range(250):
        answer = client.completions.create(model="tiny", prompt="Again", max_tokens=1)
        assert answer.usage.completion_tokens == 1
