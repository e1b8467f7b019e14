"""Clients with the provider's own key, and nothing but the base URL changed, before a gateway that one flag has started.

The provider is played from tests/fixtures, and looks at keys as the real one does.
"""

import http.server
import json
import pathlib
import subprocess
import sys
import threading

import anthropic
import openai
import pytest

from conftest import key_of, running, serving

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
ANSWERS = {
    "/v1/chat/completions": ("openai/chat_whole.json", "openai/chat_usage.sse"),
    "/v1/messages": ("anthropic/messages_whole.json", "anthropic/messages_thinking_tools.sse"),
}
ASK = [{"role": "user", "content": "Where to?"}]
OPENAI_KEY = "sk-proj-the-clients-own"
ANTHROPIC_KEY = "sk-ant-api03-the-clients-own"
LOGIN = "sk-ant-oat01-a-subscription"
REFUSALS = {
    "/v1/chat/completions": {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error",
                                       "param": None, "code": "invalid_api_key"}},
    "/v1/messages": {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}},
}  # fmt: skip


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Every header of the last request, by its name in lower case.
    seen = {}

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Provider.seen = {name.lower(): value for name, value in self.headers.items()}
        if not self.is_known():
            return self.say(401, "application/json", json.dumps(REFUSALS[self.path]).encode())
        whole, stream = ANSWERS[self.path]
        streams = asked.get("stream", False)
        kind = "text/event-stream" if streams else "application/json"
        self.say(200, kind, (FIXTURES / (stream if streams else whole)).read_bytes())

    def is_known(self) -> bool:
        if self.path == "/v1/chat/completions":
            return self.headers["authorization"] == f"Bearer {OPENAI_KEY}"
        # The one or the other, by the version of the client.
        shown = self.headers["x-api-key"], self.headers["authorization"]
        return ANTHROPIC_KEY in shown or f"Bearer {ANTHROPIC_KEY}" in shown or f"Bearer {LOGIN}" in shown

    def say(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def provider():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def told_by_readme(start: str) -> str:
    """The rest of the only command of README that starts so."""
    readme = (FIXTURES.parent.parent / "README.md").read_text()
    section = readme.split("## Point a client at it")[1].split("\n## ")[0]
    [command] = [line.removeprefix(f"$ {start}") for line in section.splitlines() if line.startswith(f"$ {start}")]
    return command.split("#")[0].strip()


@pytest.fixture(scope="module")
def gateway(provider, tmp_path_factory):
    """As README starts it; the other words keep it apart from other tests."""
    words = told_by_readme("taximeter serve ").replace("https://api.openai.com", provider).split()
    data = tmp_path_factory.mktemp("drop-in")
    apart = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data-dir", str(data)]
    with running([*words, *apart], data) as gateway:
        yield gateway


def test_openai_python_is_served_with_its_own_key_by_the_environment_alone(gateway, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", f"{gateway.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
    client = openai.OpenAI(max_retries=0)
    assert client.chat.completions.create(model="gpt-5.4-mini", messages=ASK).choices
    assert list(client.chat.completions.create(model="gpt-5.4-mini", messages=ASK, stream=True))
    assert {record["tenant"] for record in gateway.records()} == {"default"}


def test_a_program_that_knows_nothing_of_the_gateway_is_served(gateway):
    program = "import openai; print(openai.OpenAI().chat.completions.create(model='m', messages=[]).choices[0].index)"
    url = told_by_readme("OPENAI_BASE_URL=").split()[0].replace("http://127.0.0.1:8080", gateway.url)
    environment = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": OPENAI_KEY}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "0\n"), ran.stderr


def test_anthropic_python_is_served_with_its_own_key_by_the_environment_alone(gateway, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", gateway.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", ANTHROPIC_KEY)
    client = anthropic.Anthropic(max_retries=0)
    assert client.messages.create(model="claude-sonnet-5-5", max_tokens=8, messages=ASK).content
    with client.messages.stream(model="claude-sonnet-5-5", max_tokens=8, messages=ASK) as stream:
        assert stream.get_final_message().content


def test_a_subscription_s_login_goes_on_beside_a_key_that_is_none(gateway):
    other = {"x-api-key": "sk-ant-other"}
    client = anthropic.Anthropic(base_url=gateway.url, auth_token=LOGIN, default_headers=other, max_retries=0)
    assert client.messages.create(model="claude-sonnet-5-5", max_tokens=8, messages=ASK).content
    assert (Provider.seen["authorization"], Provider.seen["x-api-key"]) == (f"Bearer {LOGIN}", "sk-ant-other")


def test_a_wrong_key_is_refused_in_the_provider_s_own_words(gateway):
    wrong = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="sk-wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError, match="Incorrect API key provided"):
        wrong.chat.completions.create(model="gpt-5.4-mini", messages=ASK)
    wrong = anthropic.Anthropic(base_url=gateway.url, api_key="sk-wrong", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
        wrong.messages.create(model="claude-sonnet-5-5", max_tokens=8, messages=ASK)


def test_a_key_of_the_gateway_beside_the_client_s_own(provider, tmp_path, monkeypatch):
    upstreams = [{"name": "provider", "url": provider}]
    with serving(tmp_path, upstreams, ["drop-in"]) as gateway:
        ours = {"x-taximeter-key": key_of("drop-in")}
        url = f"{gateway.url}/v1"
        client = openai.OpenAI(base_url=url, api_key=OPENAI_KEY, default_headers=ours, max_retries=0)
        assert client.chat.completions.create(model="gpt-5.4-mini", messages=ASK).choices
        assert not [value for value in Provider.seen.values() if key_of("drop-in") in value]
        monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"x-taximeter-key: {key_of('drop-in')}")
        claude = anthropic.Anthropic(base_url=gateway.url, auth_token=LOGIN, max_retries=0)
        assert claude.messages.create(model="claude-sonnet-5-5", max_tokens=8, messages=ASK).content
        assert Provider.seen["authorization"] == f"Bearer {LOGIN}"
        assert "x-taximeter-key" not in Provider.seen
        Provider.seen = {}
        wrong = openai.OpenAI(
            base_url=url, api_key=OPENAI_KEY, default_headers={"x-taximeter-key": "tax-wrong"}, max_retries=0
        )
        with pytest.raises(openai.AuthenticationError) as refusal:
            wrong.chat.completions.create(model="gpt-5.4-mini", messages=ASK)
        assert (refusal.value.code, refusal.value.param) == ("invalid_api_key", "x-taximeter-key")
        # Without a key of the gateway, its own key is no key here, and goes nowhere.
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=url, api_key=OPENAI_KEY, max_retries=0).chat.completions.create(
                model="gpt-5.4-mini", messages=ASK
            )
        assert Provider.seen == {}
        assert [record["tenant"] for record in gateway.records()] == ["drop-in", "drop-in"]

