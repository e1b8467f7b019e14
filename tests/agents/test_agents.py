"""Each client of the recipes, started as its page says, with nothing but the address and the key of the test.

All of them run once, some side by side. Then what Taximeter has of each is held against what the engine told, what the
client printed, and what the page says.
"""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess
import threading
from decimal import Decimal

import pytest

import engine as scripted
from programs import running
from recipes import ADDRESS, INDEX, RECIPES, configuration

BINARY = os.environ["TAXIMETER_BINARY"]
CLIENTS = pathlib.Path(os.environ["CLIENTS"])
SECONDS_MAX = 120
PROMPT = "Say hello"
# The session that the recipes name where the client names none.
NAMED = "fix-the-tests"
# Codex goes on with its last session, whose context is too long for it by now.
COMPACTS = 'codex exec -c model_context_window=200000 -c model_auto_compact_token_limit=1000 resume --last "Go on"\n'
# Keeps clients from asking anybody but the gateway: for their news, and about us.
QUIET = {
    "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "CONTINUE_TELEMETRY_ENABLED": "0",
    "AIDER_ANALYTICS_DISABLE": "true", "AIDER_CHECK_UPDATE": "false", "AIDER_SHOW_MODEL_WARNINGS": "false",
    "AIDER_SHOW_RELEASE_NOTES": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}


@dataclasses.dataclass
class Says:
    """What a client says of itself."""

    client: str | None
    # The member of what it prints that has the session; none if it names no session.
    session: str | None = None
    # The name of the main agent, and the parent that sub-agents name.
    root: str | None = None
    parent: str | None = None
    has_turns: bool = False
    # The headers that its page adds name an agent.
    agent: str | None = None


SAYS = {
    "aider": Says("openai-python/2.20"),
    "claude-code": Says("claude-code/2.1", "session_id"),
    "codex": Says("codex/0.169", "thread_id", root="root", parent="root", has_turns=True),
    "continue": Says(None),
    "gemini-cli": Says("gemini-cli/0.61"),
    "langgraph": Says("openai-python/3.57", agent="greeter"),
    "openai-agents": Says("openai-agents/0.24", agent="greeter"),
    "opencode": Says("opencode/1.18", "sessionID", root="root", parent="root"),
    "pydantic-ai": Says("pydantic-ai/2.68", agent="greeter"),
}


@dataclasses.dataclass
class Run:
    recipe: str
    way: int
    prompt: str
    # A tenant of its own, so that its records can be told from those of others.
    tenant: str
    # What is typed behind what the page says.
    more: str = ""
    done: subprocess.CompletedProcess | None = None
    records: list[dict] = dataclasses.field(default_factory=list)

    def session(self):
        """What the client printed as its session; where it names none, the page does, in the second way."""
        member = SAYS[self.recipe].session
        if member is None:
            return NAMED if self.way == 1 else None
        found = re.search(rf'"{member}": ?"([^"]+)"', self.done.stdout)
        return found and found[1]


def planned():
    runs = []
    for name, says in SAYS.items():
        second = scripted.DELEGATES if says.session else PROMPT
        ways = range(len(RECIPES[name].ways))
        for way, prompt in [(0, second), *((way, PROMPT) for way in ways)]:
            runs.append(Run(name, way, prompt, f"{name}-{len(runs)}"))
        if name == "codex":
            runs += [Run(name, way, PROMPT, f"{name}-compacts-{way}", COMPACTS) for way in ways]
    return runs


def start(run, folder, address):
    """Starts a client as its page says, in a fresh home."""
    way = RECIPES[run.recipe].ways[run.way]
    home, work = folder / "home", folder / "work"
    work.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", work], check=True)
    for name, text in way.files.items():
        file = home / name[2:] if name.startswith("~/") else work / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace(ADDRESS, address))
    script = way.script.replace(ADDRESS, address) + run.more
    assert PROMPT in script + "".join(way.files.values()), "the page asks something else"
    programs = [CLIENTS / run.recipe / "bin", CLIENTS / run.recipe / "node_modules/.bin"]
    env = {"PATH": ":".join([*map(str, programs), os.environ["PATH"]]), "HOME": str(home), "LANG": "C.UTF-8",
           "TAXIMETER_KEY": key_of(run.tenant), **QUIET}
    # One that hangs fails, and no other.
    words = ["timeout", "--kill-after=10", str(SECONDS_MAX), "bash", "-euc", script.replace(PROMPT, run.prompt)]
    run.done = subprocess.run(words, cwd=work, env=env, text=True, stdin=subprocess.DEVNULL, capture_output=True)


def key_of(tenant):
    return f"tax-{tenant}"


@dataclasses.dataclass
class Stage:
    runs: list[Run]
    engine: scripted.Engine
    data_dir: pathlib.Path

    def asked(self, *words):
        """What a command prints about the ledger."""
        command = [BINARY, *words, "--data-dir", str(self.data_dir)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def of(self, recipe):
        return [run for run in self.runs if run.recipe == recipe]


@pytest.fixture(scope="session")
def stage(tmp_path_factory):
    """All clients have run, and the gateway has ended."""
    folder = tmp_path_factory.mktemp("agents")
    runs = planned()
    keys = {run.tenant: hashlib.sha256(key_of(run.tenant).encode()).hexdigest() for run in runs}
    with scripted.serving() as (engine, address):
        file = folder / "taximeter.yaml"
        file.write_text(configuration(address, keys))
        secrets = {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2", "GEMINI_API_KEY": "sk-3"}
        os.environ.update({name: f"{value}-a-secret-of-the-operator" for name, value in secrets.items()})
        words = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data-dir", str(folder / "data")]
        with running("stderr", BINARY, "serve", "--config", str(file), *words) as log:
            told = next((json.loads(line) for line in log if json.loads(line).get("event") == "listening"), None)
            assert told, "the gateway did not start"
            # Read on, or the gateway blocks on a full pipe.
            threading.Thread(target=lambda: list(log), daemon=True).start()
            # Half of their time they wait.
            with concurrent.futures.ThreadPoolExecutor(2 * os.cpu_count()) as pool:
                url = f"http://{told['listen']}"
                list(pool.map(lambda run: start(run, folder / run.tenant, url), runs))
        stage = Stage(runs, engine, folder / "data")
    records = [json.loads(line) for line in stage.asked("records").splitlines()]
    for run in runs:
        run.records = [record for record in records if record["tenant"] == run.tenant]
    assert sum(len(run.records) for run in runs) == len(records), "a record of nobody"
    return stage


def test_every_page_is_tested():
    assert set(RECIPES) == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_a_client_gets_its_answer_through_the_gateway_as_its_page_says(stage, name):
    for run in stage.of(name):
        said = f"{run.done.stdout}\n{run.done.stderr}"
        assert run.done.returncode == 0, said
        assert scripted.TEXT in run.done.stdout, said


@pytest.mark.parametrize("name", SAYS)
def test_a_record_has_the_usage_that_the_engine_told(stage, name):
    told = {answer["id"]: answer for answer in stage.engine.told}
    for run in stage.of(name):
        assert run.records
        for record in run.records:
            answer, usage = told[record["response_id"]], record["usage"]
            counts = [usage[f"{part}_tokens"] for part in ("input", "cache_read_input", "output")]
            assert counts == [answer["input"], answer["cached"], answer["output"]]
            assert usage["source"] == "reported"
            # The engine's numbers are not those of its text, and Taximeter says so.
            assert set(usage["flags"]) <= {"differs"}
            assert (record["end"], record["request_model"]) == ("complete", answer["model"])
            assert Decimal(record["cost"]["amount"]) > 0


@pytest.mark.parametrize("name", SAYS)
def test_a_record_has_the_session_the_agent_and_the_client_that_the_client_says(stage, name):
    says = SAYS[name]
    sessions = []
    for run in stage.of(name):
        assert {record.get("session") for record in run.records} == {run.session()}
        sessions.append(run.session())
        assert {record.get("client") for record in run.records} == {says.client}
        assert {"turn" in record for record in run.records} == {says.has_turns}
        main = says.agent if run.way == 1 and says.session is None else says.root
        kinds = [record["kind"] for record in run.records if "kind" in record]
        assert kinds == (["compaction"] if run.more else [])
        agents = {record.get("agent"): record.get("parent_agent") for record in run.records}
        assert agents.pop(main, "no request") is None
        if run.prompt != scripted.DELEGATES:
            assert agents == {}
            continue
        [(agent, parent)] = agents.items()
        assert (agent is not None, parent) == (True, says.parent)
        # Claude Code does not print it.
        assert name == "claude-code" or agent in run.done.stdout
        turns = {record.get("agent"): record.get("turn") for record in run.records}
        assert len(set(turns.values())) == (2 if says.has_turns else 1)
    if says.session:
        assert len(set(sessions)) == len(sessions), "two runs are one session"


def test_no_call_of_a_client_is_lost_or_refused(stage):
    told = sorted(answer["id"] for answer in stage.engine.told)
    recorded = sorted(record["response_id"] for run in stage.runs for record in run.records)
    assert recorded == told
    assert {status for _, _, status in stage.engine.seen} == {200}
    refused = json.loads(stage.asked("refusals", "--format", "json"))
    # Codex asks for a WebSocket first, as its page says.
    reasons = {(row["reason"], row["status"]) for row in refused["rows"]}
    assert reasons <= {("not_supported", 426)}, refused


def test_what_sessions_cost_is_what_their_requests_cost(stage, capsys):
    sums = {}
    for run in stage.runs:
        for record in run.records:
            if "session" in record:
                sums.setdefault((run.tenant, record["session"]), []).append(record)
    listed = json.loads(stage.asked("sessions", "--json", "--limit", "1000"))["sessions"]
    assert {(row["tenant"], row["session"]) for row in listed} == set(sums)
    for row in listed:
        records = sums[row["tenant"], row["session"]]
        assert row["requests"] == len(records)
        assert Decimal(row["cost"]) == sum(Decimal(record["cost"]["amount"]) for record in records)
        for part in ("input", "cache_read_input", "output"):
            assert row[f"{part}_tokens"] == sum(record["usage"][f"{part}_tokens"] for record in records)
        assert row["agents"] == len({record.get("agent") for record in records})
    with capsys.disabled():
        print("\n" + stage.asked("sessions", "--limit", "1000"))


@pytest.mark.parametrize("name", SAYS)
def test_a_page_says_what_is_recorded(name):
    says, page = SAYS[name], RECIPES[name].text
    [row] = [line for line in INDEX.splitlines() if f"(recipes/{name}.md)" in line]
    session, agents = (cell.strip() for cell in row.split("|")[3:5])
    assert (session == "yes") == (says.session is not None)
    assert (agents == "no") == (says.session is None and says.agent is None)
    assert f"`client` | `{says.client}`" in page or (says.client is None and "`client` | none" in page)
