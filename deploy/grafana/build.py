#!/usr/bin/env python3
"""Makes the dashboards in this folder: it has each panel once, and writes the JSON for Grafana.

usage: deploy/grafana/build.py    writes operations.json, money.json, objectives.json
"""

import json
import pathlib

FOLDER = pathlib.Path(__file__).parent
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24

# Label matchers from the variables of a dashboard.
ANY = 'job=~"$job", instance=~"$instance"'
TENANT = ANY + ', taximeter_tenant=~"$tenant"'
REQUEST = TENANT + ', gen_ai_request_model=~"$model"'


def rate(name, labels=REQUEST, by="", over="$__rate_interval"):
    return f"sum{f' by ({by})' if by else ''} (rate({name}{{{labels}}}[{over}]))"


def quantiles(*names, labels=REQUEST):
    """p50, p95 and p99 of the first of these metrics that exists."""
    buckets = " or ".join(rate(f"{name}_bucket", labels, by="le") for name in names)
    return [(f"histogram_quantile({q}, {buckets})", word) for q, word in [(0.5, "p50"), (0.95, "p95"), (0.99, "p99")]]


def share(part, whole, by=""):
    group = f" by ({by})" if by else ""
    of = f"sum{group} (rate({part}[$__rate_interval]))"
    return f"{of} / (sum{group} (rate({whole}[$__rate_interval])) > 0)"


def panel(kind, title, queries, unit, width, height, about="", **more):
    queries = [(queries, "")] if isinstance(queries, str) else queries
    instant = kind in ("stat", "table")
    targets = [{"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": expr, "legendFormat": legend,
                "instant": instant, "range": not instant, **({"format": "table"} if kind == "table" else {})}
               for at, (expr, legend) in enumerate(queries)]
    custom = {} if kind != "timeseries" else {
        "fillOpacity": 8, "lineWidth": 1, "showPoints": "never",
        "stacking": {"mode": "normal" if more.pop("stacked", False) else "none"},
    }
    options = {
        "state-timeline": {"mergeValues": True, "rowHeight": 0.8, "legend": {"showLegend": False}},
        "timeseries": {"legend": {"displayMode": "list", "placement": "bottom"},
                       "tooltip": {"mode": "multi", "sort": "desc"}},
        "stat": {"colorMode": "none", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}},
        "table": {"sortBy": [{"displayName": "Value", "desc": True}]},
    }[kind]
    defaults = {"unit": unit, "custom": custom, **({"min": 0} if unit != "short" else {}), **more.pop("field", {})}
    return {"type": kind, "title": title, "description": about, "datasource": SOURCE, "targets": targets,
            "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options, **more,
            "gridPos": {"w": width, "h": height}}


def stat(title, query, unit, about="", **more):
    return panel("stat", title, query, unit, 4, 4, about, **more)


def graph(title, queries, unit, about="", **more):
    return panel("timeseries", title, queries, unit, more.pop("width", 8), 8, about, **more)


def table(title, query, unit, about=""):
    # Show only labels and the value.
    hide = {"id": "organize", "options": {"excludeByName": {"Time": True}}}
    return panel("table", title, query, unit, 8, 8, about, transformations=[hide])


def good_or(bad):
    """Green at 1. Red, with a word for it, at 0."""
    steps = [{"color": "red", "value": None}, {"color": "green", "value": 1}]
    words = [{"type": "value", "options": {"0": {"text": bad}, "1": {"text": "good"}}}]
    return {"mappings": words, "thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "thresholds"}}


def health(title, query, about=""):
    """A state that needs attention only if it is bad."""
    found = stat(title, query, "short", about, field=good_or("cannot be written"))
    found["options"]["colorMode"] = "value"
    return found


def bands(title, queries, about=""):
    """One band for each series, red while it fails."""
    return panel("state-timeline", title, queries, "short", WIDTH, 6, about, field=good_or("fails"))


def laid_out(rows):
    """Panels from left to right, row by row. Each row has a heading."""
    panels, top = [], 0
    for title, row in rows:
        panels.append({"type": "row", "title": title, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1}})
        top, left, highest = top + 1, 0, 0
        for shown in row:
            size = shown["gridPos"]
            if left + size["w"] > WIDTH:
                top, left, highest = top + highest, 0, 0
            size |= {"x": left, "y": top}
            left, highest = left + size["w"], max(highest, size["h"])
            panels.append(shown)
        top += highest
    return [{"id": number, **shown} for number, shown in enumerate(panels, 1)]


def choice(name, label, series, key):
    """A variable with any number of values of a label. Without a choice it takes all."""
    all_of_it = {"multi": True, "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}}
    return {**choice_of_one(name, label, series, key), **all_of_it}


def choice_of_one(name, label, series, key):
    query = f"label_values({series}, {key})"
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "query": query, "definition": query,
            "refresh": 2, "sort": 1}


CHOICES = [
    choice("job", "Job", "taximeter_ledger_healthy", "job"),
    choice("instance", "Instance", 'taximeter_ledger_healthy{job=~"$job"}', "instance"),
    choice("tenant", "Tenant", 'taximeter_requests_total{job=~"$job"}', "taximeter_tenant"),
    choice("model", "Model", 'taximeter_requests_total{job=~"$job"}', "gen_ai_request_model"),
]


def dashboard(name, title, about, rows, choices, **more):
    links = [{"type": "dashboards", "title": "Taximeter", "tags": ["taximeter"], "asDropdown": True, "keepTime": True,
              "includeVars": True}]
    made = {
        "uid": f"taximeter-{name}", "title": title, "description": about, "tags": ["taximeter"], "links": links,
        "schemaVersion": 39, "editable": True, "graphTooltip": 1, "timezone": "browser", "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "label": "Data source", "type": "datasource",
                                 "query": "prometheus"}, *choices]},
        "panels": laid_out(rows), **more,
    }
    (FOLDER / f"{name}.json").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")


ANSWERS = f"http_server_request_duration_seconds_count{{{TENANT}}}"
# 5xx, and answers that broke off while the client waited.
BROKEN = f'http_server_request_duration_seconds_count{{{TENANT}, error_type!~"|client_disconnect"}}'
# What the engine refused although the client did nothing wrong: 429, or a credential of the gateway.
REFUSING = f'taximeter_requests_total{{{TENANT}, taximeter_status_class="4xx", taximeter_fault=~"engine|gateway"}}'
# Every wait of a stream for its first token, whatever ended it.
WAIT = "taximeter_first_token_wait_seconds"
STREAM = REQUEST + ', taximeter_stream="true"'
# Names of both generations of the GenAI conventions.
GAPS = quantiles("gen_ai_client_operation_time_per_output_chunk_seconds", "gen_ai_client_inference_time_per_output_chunk_seconds")
STALLED = 'taximeter_end=~"upstream_stalled|client_stalled"'

dashboard("operations", "Taximeter: operations", "Rates, errors, latency, engines, and the resources of the gateway itself.", [
    ("Now", [
        stat("Requests", f"sum (rate({ANSWERS}[$__rate_interval]))", "reqps", "All requests, of any model."),
        stat("Broken answers", f"(sum(rate({BROKEN}[$__rate_interval]) or rate({REFUSING}[$__rate_interval])) "
             f"/ (sum(rate({ANSWERS}[$__rate_interval])) > 0)) or vector(0)", "percentunit",
             "Requests of any model with a 5xx status, from an engine or from the gateway, or with an answer that broke off, and "
             "requests that an engine refused although the client did nothing wrong."),
        stat("Open requests", f"sum(taximeter_requests_open{{{ANY}}})", "short", "Requests that are reserved on the ledger and have not ended."),
        stat("First token, p95", quantiles(WAIT, labels=STREAM)[1][0], "s", "Waits of streams for their first token, whatever ended them."),
        stat("Gap between chunks, p95", GAPS[1][0], "s"),
        health("Ledger", f"min(taximeter_ledger_healthy{{{ANY}}})", "Every gateway can write its ledger."),
    ]),
    ("Requests", [
        graph("Requests by how they ended", [(rate("taximeter_requests_total", by="taximeter_end"), "{{taximeter_end}}")],
              "reqps", stacked=True),
        graph("Answers by status", [(rate("http_server_request_duration_seconds_count", TENANT, "http_response_status_code"),
                                     "{{http_response_status_code}}")], "reqps", stacked=True),
        graph("Refused and void", [(rate("taximeter_refusals_total", TENANT, "taximeter_refusal_code"), "{{taximeter_refusal_code}}"),
                             (rate("taximeter_voids_total", TENANT, "taximeter_void_reason"), "void: {{taximeter_void_reason}}")],
              "reqps", "Requests that the gateway refused, by error code. Reserved requests that used nothing, by reason."),
        graph("Not served, by who has caused it", [(rate("taximeter_requests_total", REQUEST + ', taximeter_fault!=""', "taximeter_fault, taximeter_end"),
                                                    "{{taximeter_fault}}: {{taximeter_end}}")], "reqps", stacked=True),
        graph("Refused by limit", [(f"{rate('taximeter_limits_refusals_total', ANY, 'taximeter_kind')} or vector(0)", "{{taximeter_kind}}")], "reqps",
              "Requests and connections above a limit: of a tenant (concurrency), or of the gateway."),
        graph("Output tokens a second, running", [(rate("taximeter_output_running_total", by="gen_ai_request_model"), "{{gen_ai_request_model}}")],
              "short", "Output of streams while it is generated, told each second. Where the engine does not say it, this is an estimate. "
              "Tokens of answers that are no streams are not in it.", stacked=True),
        graph("Waits for a first token by their end", [(rate(f"{WAIT}_count", by="taximeter_outcome"), "{{taximeter_outcome}}")], "reqps",
              "token: it came. left: the client left before it. failed: the engine or the gateway failed before it.", stacked=True),
    ]),
    ("Latency", [
        graph("Time to first token", quantiles(WAIT, labels=STREAM), "s",
              "Until the first event with generated content, or until the client left or the engine failed before it. Queue and prefill "
              "of the engine are part of it."),
        graph("Gap between chunks", GAPS, "s"),
        graph("Time per output token", quantiles("gen_ai_server_time_per_output_token_seconds"), "s"),
        graph("Whole request", quantiles("gen_ai_server_request_duration_seconds"), "s"),
        graph("First token by model, p95",
              [(f"histogram_quantile(0.95, {rate(f'{WAIT}_bucket', STREAM, 'le, gen_ai_request_model')})",
                "{{gen_ai_request_model}}")], "s"),
        graph("Stalls", [(rate("taximeter_requests_total", f"{REQUEST}, {STALLED}", "taximeter_end"), "{{taximeter_end}}"),
                         (rate("taximeter_answers_left_total", ANY, "taximeter_kind"), "client left: {{taximeter_kind}}")], "reqps",
              "Answers in which the engine or the client was silent for too long, and answers whose client left."),
    ]),
    ("Engines", [
        graph("Requests by engine", [(rate("taximeter_requests_total", by="server_address, server_port"),
                                      "{{server_address}}:{{server_port}}")], "reqps"),
        graph("Answers of engines by status", [(rate("http_client_request_duration_seconds_count", ANY,
                                                     "server_address, server_port, http_response_status_code"),
                                                "{{server_address}}:{{server_port}} {{http_response_status_code}}")], "reqps"),
        graph("Engine errors",
              [(rate("taximeter_upstream_connect_failures_total", ANY, "taximeter_upstream, taximeter_cause"),
                "{{taximeter_upstream}}: {{taximeter_cause}}"),
               (rate("taximeter_upstream_protocol_faults_total", ANY, "taximeter_upstream, taximeter_cause"),
                "{{taximeter_upstream}}: bad HTTP, {{taximeter_cause}}"),
               (rate("taximeter_meter_oddities_total", ANY, "taximeter_kind"), "odd: {{taximeter_kind}}")], "ops"),
        bands("Health of engines", [(f"min by (taximeter_upstream) (taximeter_upstream_healthy{{{ANY}}})", "{{taximeter_upstream}}")],
              "Red while the last request of any gateway could not be sent, got a 5xx status, or broke off. Empty before the first request."),
    ]),
    ("The gateway itself", [
        graph("Time in the gateway", quantiles("taximeter_gateway_duration_seconds"), "s",
              "From the request head until the request is sent to the engine. The reservation on the ledger is part of it."),
        graph("CPU for a request", f"{rate('process_cpu_time_seconds_total', ANY)} / ({rate('http_server_request_duration_seconds_count', ANY)} > 0)",
              "s", "CPU time of the whole process, divided by requests."),
        graph("Memory", [(f"process_memory_usage_bytes{{{ANY}}}", "{{instance}}")], "bytes"),
        graph("Ledger", [(rate("taximeter_ledger_entries_total", ANY, "instance"), "{{instance}}: entries")], "ops"),
        graph("Store lag", [(f"taximeter_store_lag{{{ANY}}}", "{{instance}}")], "short",
              "Entries of the journal that the store does not have yet. Bills are late by these."),
        graph("Data directory", [(f"taximeter_ledger_size_bytes{{{ANY}}}", "{{instance}}: size"),
                                 (f"taximeter_ledger_size_max_bytes{{{ANY}}}", "{{instance}}: room"),
                                 (f"taximeter_ledger_room_left_bytes{{{ANY}}}", "{{instance}}: left, if all goes that may go")], "bytes",
              "What it takes, and what it may take: ledger.dir_bytes_max, or what its volume leaves. What is left for new requests if "
              "history goes that may go."),
        graph("Faults of the gateway",
              [(f"sum(increase({name}{{{ANY}}}[$__rate_interval])) or vector(0)", word) for name, word in [
                  ("taximeter_ledger_entries_lost_total", "entries lost"),
                  ("taximeter_ledger_entries_rejected_total", "entries rejected"), ("taximeter_ledger_slow_total", "slow disk"),
                  ("taximeter_store_faults_total", "store"), ("taximeter_push_faults_total", "events"),
                  ("taximeter_otlp_faults_total", "OTLP"), ("taximeter_panics_total", "panics")]], "short"),
    ]),
], CHOICES)

COST = f'taximeter_cost_total{{{REQUEST}, taximeter_currency="$currency"}}'
TOKENS = f"taximeter_tokens_total{{{REQUEST}}}"
USAGE = f"taximeter_usage_total{{{REQUEST}}}"
UNPRICED = f'taximeter_unpriced_total{{{REQUEST}, taximeter_cause!~"no_quantity|too_large"}}'
# Seconds of this month that are over, and seconds of the whole month.
GONE = "((day_of_month() - 1) * 86400 + hour() * 3600 + minute() * 60)"
MONTH = "(days_in_month() * 86400)"
TO_DATE = {"timeFrom": "now/M", "hideTimeOverride": False}
# Only tokens of gateways that bill in this currency.
MILLION = ("1e6 * sum{by} (rate({cost}[$__rate_interval])) "
           "/ (sum{by} (rate({tokens}[$__rate_interval]) and on (job, instance) {cost}) > 0)")
# The dashboard variable chooses the currency, so the unit has no currency sign.
MONEY = "short"
CURRENCY = choice_of_one("currency", "Currency", 'taximeter_cost_total{job=~"$job"}', "taximeter_currency")

# One histogram with both types, or one for each, by generation.
SIZES = " or ".join([rate("gen_ai_client_token_usage_bucket", by="le, gen_ai_token_type")] + [
    f"label_replace({rate(f'gen_ai_client_inference_operation_{kind}_tokens_bucket', by='le')}, 'gen_ai_token_type', '{kind}', '', '')"
    for kind in ("input", "output")])

dashboard("money", "Taximeter: tokens and money",
          "Spend and tokens by tenant and model. The numbers are approximations. The command taximeter bill has exact ones.", [
    ("Spend", [
        stat("Spend per hour, $currency", f"sum(rate({COST}[$__rate_interval])) * 3600", MONEY),
        stat("Month to date, $currency", f"sum(increase({COST}[$__range]))", MONEY, "Calendar month in UTC.", **TO_DATE),
        stat("Month at this rate, $currency", f"sum(increase({COST}[$__range])) / scalar({GONE}) * scalar({MONTH})", MONEY,
             "Month to date, extrapolated to the end of the month.", **TO_DATE),
        stat("Per million tokens, $currency", MILLION.format(by="", cost=COST, tokens=TOKENS), MONEY, "Input and output."),
        stat("Reported by engines", share(f'taximeter_tokens_total{{{REQUEST}, taximeter_usage_source="reported"}}', TOKENS),
             "percentunit", "Share of tokens that engines reported. Taximeter counted the others."),
        stat("Without a price", f"({share(UNPRICED, USAGE)}) or vector(0)", "percentunit", "Share of requests for which a price is missing."),
        graph("Spend per hour by tenant, $currency", [(f"sum by (taximeter_tenant) (rate({COST}[$__rate_interval])) * 3600",
                                            "{{taximeter_tenant}}")], MONEY, stacked=True),
        graph("Spend per hour by model, $currency", [(f"sum by (gen_ai_response_model) (rate({COST}[$__rate_interval])) * 3600",
                                           "{{gen_ai_response_model}}")], MONEY, stacked=True),
        graph("Per million tokens by model, $currency", [(MILLION.format(by=" by (gen_ai_response_model)", cost=COST, tokens=TOKENS),
                                               "{{gen_ai_response_model}}")], MONEY),
        table("Spend by tenant, $currency", f"sort_desc(sum by (taximeter_tenant) (increase({COST}[$__range])))", MONEY),
        table("Spend by model, $currency", f"sort_desc(sum by (gen_ai_response_model) (increase({COST}[$__range])))", MONEY),
        table("Tokens by tenant", f"sort_desc(sum by (taximeter_tenant) (increase({TOKENS}[$__range])))", "short"),
    ]),
    ("Tokens", [
        graph("Tokens a second", [(rate("taximeter_tokens_total", by="gen_ai_token_type"), "{{gen_ai_token_type}}")], "short",
              stacked=True),
        graph("Tokens a second by tenant", [(rate("taximeter_tokens_total", by="taximeter_tenant"), "{{taximeter_tenant}}")], "short",
              stacked=True),
        graph("Tokens a second by model", [(rate("taximeter_tokens_total", by="gen_ai_response_model"),
                                            "{{gen_ai_response_model}}")], "short", stacked=True),
        graph("Parts of the tokens",
              [(f"{rate('taximeter_cache_read_input_tokens_total')} / ({rate('taximeter_tokens_total', REQUEST + ', gen_ai_token_type=' + chr(34) + 'input' + chr(34))} > 0)",
                "input from a cache"),
               (f"{rate('taximeter_reasoning_output_tokens_total')} / ({rate('taximeter_tokens_total', REQUEST + ', gen_ai_token_type=' + chr(34) + 'output' + chr(34))} > 0)",
                "output that is reasoning")], "percentunit"),
        graph("Tokens of a request", [(f"histogram_quantile({q}, {SIZES})", f"{{{{gen_ai_token_type}}}}, {word}")
                                      for q, word in [(0.95, "p95"), (0.5, "p50")]], "short"),
        graph("Source of usage", [(rate("taximeter_usage_total", by="taximeter_usage_source, taximeter_usage_reason"),
                                   "{{taximeter_usage_source}} {{taximeter_usage_reason}}")], "reqps",
              "Requests by the weakest source of what they used, and why it is not the engine's report.", stacked=True),
        graph("Source of token counts",
              [(rate("taximeter_tokens_total", by="taximeter_usage_source"), "{{taximeter_usage_source}}"),
               (f"{rate('taximeter_usage_recounts_total', ANY + ', taximeter_usage_agrees=' + chr(34) + 'false' + chr(34))}",
                "reports that differ from the own count")], "short"),
    ]),
], [*CHOICES, CURRENCY], timezone="utc")

TARGET = "taximeter:slo_target:ratio"


def burn(window):
    return f"taximeter:slo_bad:ratio{window}{{job=~\"$job\"}} / on (slo) group_left () (1 - {TARGET})"


dashboard("objectives", "Taximeter: objectives",
          "Time to the first token, duration and availability against their targets. "
          "Needs the rules of deploy/prometheus/taximeter.rules.yaml, which define thresholds and targets.", [
    ("30 days", [
        graph("Error budget left",
              [(f"1 - sum by (slo) (increase(taximeter:slo_bad:total{{job=~\"$job\"}}[30d])) "
                f"/ (sum by (slo) (increase(taximeter:slo_all:total{{job=~\"$job\"}}[30d])) > 0) "
                f"/ on (slo) (1 - {TARGET})", "{{slo}}")], "percentunit", width=12, field={"min": None}),
        graph("Targets", [(TARGET, "{{slo}}")], "percentunit", width=12),
    ]),
    ("Burn rate: at 1, the error budget lasts 30 days", [
        graph("Over 5 minutes", [(burn("5m"), "{{slo}}")], "short"),
        graph("Over 1 hour", [(burn("1h"), "{{slo}}")], "short"),
        graph("Over 6 hours", [(burn("6h"), "{{slo}}")], "short"),
    ]),
    ("Bad requests", [
        graph("Share of bad requests, 5 minutes", [('taximeter:slo_bad:ratio5m{job=~"$job"}', "{{slo}}")], "percentunit"),
        graph("Requests", [('sum by (slo) (rate(taximeter:slo_all:total{job=~"$job"}[$__rate_interval]))', "{{slo}}")],
              "reqps"),
        graph("Alerts", [('sum by (alertname) (ALERTS{alertname=~"Taximeter.*", alertstate="firing"}) or vector(0)',
                          "{{alertname}}")], "short"),
    ]),
], CHOICES[:1], time={"from": "now-24h", "to": "now"})
