"""What a ledger's records say of each figure that metrics tell too, computed from the records alone."""

from collections import Counter
from decimal import Decimal

# A mistake of the client is no wait that failed.
CLIENTS_STATUS = set(range(400, 500)) - {401, 402, 403, 407, 408, 429}


# Metrics have more digits of a time than records: so many seconds of each may differ, and of money none.
TIME_APART_MAX = Decimal("0.000001")


class Figure:
    """One of a metric, by some of its labels: `of` has the parts that a record adds. Only labels that are `told` count,
    and each part may differ by `apart`. It is told when a request ends, or while it runs."""

    def __init__(self, title, prometheus, otlp, labels, of, told=lambda labels: True, apart=0, while_it_runs=False):
        self.title, self.names, self.labels, self.of = title, (prometheus, otlp), labels, of
        self.told, self.apart, self.while_it_runs = told, apart, while_it_runs

    def sums(self, records):
        """By labels what records add up to, and by how much a store may have another number."""
        sums, apart = Counter(), Counter()
        for record in records:
            for labels, amount in self.of(record):
                if self.told(labels):
                    sums[labels] += amount
                    apart[labels] += self.apart
        return {labels: amount for labels, amount in sums.items() if amount}, apart

    def key(self, labels):
        """The labels that count, of a series as a store has it; what is absent is empty."""
        plain = {name.replace(".", "_"): value for name, value in labels.items()}
        return tuple(plain.get(name, "") for name in self.labels)


def died(record):
    return record["end"] == "gateway_died"


def requests(record):
    status = record["status"]
    yield (record["tenant"], record["request_model"] or "", record["end"], f"{status // 100}xx" if status else ""), 1


def tokens(record):
    usage = record["usage"]
    for kind in ("input", "output"):
        number, source = usage[f"{kind}_tokens"], usage["sources"].get(f"{kind}_tokens", "")
        if number is not None and usage["source"] != "none":
            yield (record["tenant"], kind, source), number


def part(name):
    def of(record):
        yield (record["tenant"],), record["usage"].get(name) or 0
    return of


def owed(record):
    return record.get("cost") or record.get("cost_known")


def cost(record):
    if owed(record):
        yield (record["tenant"], owed(record)["currency"]), Decimal(owed(record)["amount"])


def usage(record):
    """The weakest source of what it used, and the reason for it."""
    source, flags = record["usage"]["source"], record["usage"]["flags"]
    if source == "none":
        return
    if source != "unknown" and "estimated" in flags:
        source = "estimated"
    reasons = [flag for flag in ("context", "invalid", "zero", "token_ids", "maybe_unsent") if flag in flags]
    ended = "not_reported" if record["end"] == "complete" else record["end"]
    yield (source, "" if source == "reported" else [*reasons, ended][0]), 1


def flags(record):
    for flag in record["usage"]["flags"]:
        yield (flag,), 1


def unpriced(record):
    reasons = [unknown["reason"] for unknown in record.get("cost_unknown", [])]
    if reasons:
        of_prices = [reason for reason in reasons if reason not in ("no_quantity", "too_large")]
        yield ((of_prices or reasons)[0],), 1


def wait(record):
    """How its wait for a first token ended, and how long it was."""
    if record["operation"] == "embeddings":
        return None
    timing, end, status = record["timing"], record["end"], record["status"]
    stream = "true" if record["stream"] else ""
    if died(record):
        # Its times are not known. What it had got was told when it came.
        return (stream, "token", None) if stream and record["usage"]["output_tokens"] else None
    first = timing["time_to_first_token"] if record["stream"] else None
    if first is not None:
        return stream, "token", first
    if end in ("complete", "client_stalled"):
        return stream, "token", timing["duration"]
    if end == "client_left":
        return stream, "left", timing["duration"]
    is_clients = end == "upstream_refused" and status in CLIENTS_STATUS
    return None if is_clients else (stream, "failed", timing["duration"])


def waits(record):
    if found := wait(record):
        yield found[:2], 1


def waited(record):
    if not record["stream"] and (found := wait(record)):
        yield found[:2], Decimal(str(found[2]))


def first_token(record):
    first = record["timing"]["time_to_first_token"]
    if record["stream"] and first is not None and not record.get("error_type"):
        yield (record["tenant"],), Decimal(str(first))


def ended(record):
    if not died(record):
        yield (record["tenant"], record.get("error_type") or ""), 1


def lasted(record):
    if not died(record):
        yield (record["tenant"], record.get("error_type") or ""), Decimal(str(record["timing"]["duration"]))


def gaps(record):
    if record["stream"]:
        yield (record["request_model"] or "",), sum(record["timing"].get("gaps") or [])


TENANT, MODEL = "taximeter_tenant", "gen_ai_request_model"
FIGURES = [
    Figure("requests", "taximeter_requests_total", "taximeter.requests",
           [TENANT, MODEL, "taximeter_end", "taximeter_status_class"], requests),
    Figure("tokens", "taximeter_tokens_total", "taximeter.tokens",
           [TENANT, "gen_ai_token_type", "taximeter_usage_source"], tokens),
    Figure("read from a cache", "taximeter_cache_read_input_tokens_total", "taximeter.cache_read.input_tokens",
           [TENANT], part("cache_read_input_tokens")),
    Figure("reasoning", "taximeter_reasoning_output_tokens_total", "taximeter.reasoning.output_tokens",
           [TENANT], part("reasoning_output_tokens")),
    Figure("cost", "taximeter_cost_total", "taximeter.cost", [TENANT, "taximeter_currency"], cost),
    Figure("unknown cost", "taximeter_unpriced_total", "taximeter.unpriced", ["taximeter_cause"], unpriced),
    Figure("usage", "taximeter_usage_total", "taximeter.usage",
           ["taximeter_usage_source", "taximeter_usage_reason"], usage),
    Figure("flags", "taximeter_usage_flags_total", "taximeter.usage.flags", ["taximeter_usage_flag"], flags),
    Figure("waits for a first token", "taximeter_first_token_wait_seconds_count", "taximeter.first_token.wait_count",
           ["taximeter_stream", "taximeter_outcome"], waits, while_it_runs=True),
    Figure("seconds of those without a stream", "taximeter_first_token_wait_seconds_sum", "taximeter.first_token.wait_sum",
           ["taximeter_stream", "taximeter_outcome"], waited,
           # What failed is timed once more when it is told.
           lambda labels: labels == ("", "token"), TIME_APART_MAX),
    Figure("seconds to the first token", "gen_ai_server_time_to_first_token_seconds_sum",
           "gen_ai.server.time_to_first_token_sum", [TENANT], first_token, apart=TIME_APART_MAX),
    Figure("durations", "gen_ai_server_request_duration_seconds_count", "gen_ai.server.request.duration_count",
           [TENANT, "error_type"], ended),
    Figure("seconds of these", "gen_ai_server_request_duration_seconds_sum", "gen_ai.server.request.duration_sum",
           [TENANT, "error_type"], lasted, lambda labels: not labels[1], TIME_APART_MAX),
    Figure("gaps", "gen_ai_client_operation_time_per_output_chunk_seconds_count",
           "gen_ai.client.operation.time_per_output_chunk_count", [MODEL], gaps),
]
# Of these the ledger has records, or counts.
REFUSALS = Figure("answers of the gateway itself", "taximeter_refusals_total", "taximeter.refusals",
                  ["taximeter_refusal_code"], lambda record: ())
