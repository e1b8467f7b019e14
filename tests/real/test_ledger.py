"""What the ledger says after the clients' rides, against what the engine itself counted.

Runs after `test_clients.py`: pytest takes files by name, tests in the order they are written.
"""

import json
import subprocess

import pytest

from conftest import TENANTS, counter, scrape


@pytest.fixture(scope="module")
def answered(gateway):
    """Records of requests that the engine answered: 200."""
    return [record for record in gateway.records() if record["status"] == 200]


def total(records, member):
    return sum(record["usage"][member] or 0 for record in records)


def test_every_ride_is_complete_and_its_tokens_are_the_engines_own(answered):
    assert {record["tenant"] for record in answered} == set(TENANTS)
    for record in answered:
        assert record["end"] == "complete", record
        assert record["usage"]["source"] == "reported", record


def test_the_ledgers_tokens_are_exactly_the_engines_counters(engine, answered):
    metrics = scrape(engine)
    evaluated = counter(metrics, "llamacpp:prompt_tokens_total")
    cached = counter(metrics, "llamacpp:prompt_tokens_cached_total")
    predicted = counter(metrics, "llamacpp:tokens_predicted_total")

    # llama.cpp counts prompt tokens that it evaluated and those that it had cached apart; ours include both.
    assert total(answered, "input_tokens") == evaluated + cached
    assert total(answered, "cache_read_input_tokens") == cached
    assert total(answered, "output_tokens") - embedding_output(answered) == predicted
    assert min(evaluated, cached, predicted) > 0


def embedding_output(records):
    """An embedding generates nothing, whatever is written for it."""
    return total([r for r in records if r["operation"] == "embeddings"], "output_tokens")


def test_streams_are_timed_to_their_first_token(answered):
    streams = [record for record in answered if record["stream"]]
    assert streams
    for record in streams:
        timing = record["timing"]
        assert 0 < timing["time_to_first_chunk"] <= timing["time_to_first_token"] <= timing["duration"]


def test_a_model_that_the_book_does_not_know_costs_unknown(answered):
    assert all(record["cost"] is None for record in answered)


def test_the_bill_adds_up_to_the_records(gateway, answered):
    bill = json.loads(gateway.command("bill", "--format", "json"))
    rows = bill["rows"]
    for member in ("input_tokens", "output_tokens"):
        assert sum(row[member] for row in rows) == total(answered, member)
    assert all(row["cost"] is None for row in rows)


def test_promtool_finds_nothing_wrong_with_our_metrics(gateway):
    metrics = scrape(gateway.admin)
    assert "gen_ai_client_token_usage" in metrics
    check = subprocess.run(
        ["promtool", "check", "metrics"], input=metrics, capture_output=True, text=True, timeout=60
    )
    assert (check.returncode, check.stdout + check.stderr) == (0, "")
