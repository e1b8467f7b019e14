#!/usr/bin/env python3
"""Makes the dashboards beside this file: what they show is said here once, and Grafana's JSON is made of it.

usage: deploy/grafana/build.py    writes operations.json, money.json, objectives.json
"""

import json
import pathlib

FOLDER = pathlib.Path(__file__).parent
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24

# What a series of most instruments must be, by the choices above a dashboard.
ANY = 'job=~"$job", instance=~"$instance"'
TENANT = ANY + ', taximeter_tenant=~"$tenant"'
REQUEST = TENANT + ', gen_ai_request_model=~"$model"'


def rate(name, labels=REQUEST, by="", over="$__rate_interval"):
    return f"sum{f' by ({by})' if by else ''} (rate({name}{{{labels}}}[{over}]))"


def quantiles(*names):
    """The middle, and the slow ends that people notice; of the first of these names that there is."""
    buckets = " or ".join(rate(f"{name}_bucket", by="le") for name in names)
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
    # Of what Prometheus tells, only the labels and the number.
    hide = {"id": "organize", "options": {"excludeByName": {"Time": True}}}
    return panel("table", title, query, unit, 8, 8, about, transformations=[hide])


def good_or(bad):
    """Green at 1, and red, with a word for it, at 0."""
    steps = [{"color": "red", "value": None}, {"color": "green", "value": 1}]
    words = [{"type": "value", "options": {"0": {"text": bad}, "1": {"text": "good"}}}]
    return {"mappings": words, "thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "thresholds"}}


def health(title, query, about=""):
    """Nothing to look at while it is good."""
    found = stat(title, query, "short", about, field=good_or("cannot be written"))
    found["options"]["colorMode"] = "value"
    return found


def bands(title, queries, about=""):
    """A band for each, red while it fails."""
    return panel("state-timeline", title, queries, "short", WIDTH, 6, about, field=good_or("fails"))


def laid_out(rows):
    """Panels from left to right, row by row, each row under its heading."""
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
    """Any number of what a label says, and all of it where nothing is chosen."""
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
# As the objective of availability has it: 5xx, and answers that broke off although the client waited.
BROKEN = f'http_server_request_duration_seconds_count{{{TENANT}, error_type!~"|client_disconnect"}}'
# By the names of both generations of the GenAI conventions.
GAPS = quantiles("gen_ai_client_operation_time_per_output_chunk_seconds", "gen_ai_client_inference_time_per_output_chunk_seconds")
STALLED = 'taximeter_end=~"upstream_stalled|client_stalled"'
REQUESTS = f"taximeter_requests_total{{{REQUEST}}}"

dashboard("operations", "Taximeter: operations", "Rates, errors, times, engines, and what the gateway itself costs.", [
    ("Now", [
        stat("Requests", f"sum (rate({ANSWERS}[$__rate_interval]))", "reqps", "All that were asked, of any model."),
        stat("Broken answers", f"({share(BROKEN, ANSWERS)}) or vector(0)", "percentunit",
             "Requests of any model that were answered 5xx, by an engine or by the gateway, or whose answer broke off."),
        stat("Open requests", f"sum(taximeter_requests_open{{{ANY}}})", "short", "Reserved on the ledger, not ended."),
        stat("First token, p95", quantiles("gen_ai_server_time_to_first_token_seconds")[1][0], "s"),
        stat("Gap between chunks, p95", GAPS[1][0], "s"),
        health("Ledger", f"min(taximeter_ledger_healthy{{{ANY}}})", "Whether every gateway can write its ledger."),
    ]),
    ("Requests", [
        graph("Requests by how they ended", [(rate("taximeter_requests_total", by="taximeter_end"), "{{taximeter_end}}")],
              "reqps", stacked=True),
        graph("Answers by status", [(rate("http_server_request_duration_seconds_count", TENANT, "http_response_status_code"),
                                     "{{http_response_status_code}}")], "reqps", stacked=True),
        graph("Not served", [(rate("taximeter_refusals_total", TENANT, "taximeter_refusal_code"), "{{taximeter_refusal_code}}"),
                             (rate("taximeter_voids_total", TENANT, "taximeter_void_reason"), "void: {{taximeter_void_reason}}")],
              "reqps", "Refused by the gateway, by the code that the client was told; and reserved requests that used nothing."),
    ]),
    ("Times", [
        graph("Time to first token", quantiles("gen_ai_server_time_to_first_token_seconds"), "s",
              "Until the first event with generated content; queue and prefill of the engine are in it."),
        graph("Gap between chunks", GAPS, "s"),
        graph("Time per output token", quantiles("gen_ai_server_time_per_output_token_seconds"), "s"),
        graph("Whole request", quantiles("gen_ai_server_request_duration_seconds"), "s"),
        graph("First token by model, p95",
              [(f"histogram_quantile(0.95, {rate('gen_ai_server_time_to_first_token_seconds_bucket', by='le, gen_ai_request_model')})",
                "{{gen_ai_request_model}}")], "s"),
        graph("Stalls", [(rate("taximeter_requests_total", f"{REQUEST}, {STALLED}", "taximeter_end"), "{{taximeter_end}}"),
                         (rate("taximeter_answers_left_total", ANY, "taximeter_kind"), "client left: {{taximeter_kind}}")], "reqps",
              "Answers in which a side fell silent for longer than its limit, and answers that a client left within."),
    ]),
    ("Engines", [
        graph("Requests by engine", [(rate("taximeter_requests_total", by="server_address, server_port"),
                                      "{{server_address}}:{{server_port}}")], "reqps"),
        graph("Answers of engines by status", [(rate("http_client_request_duration_seconds_count", ANY,
                                                     "server_address, server_port, http_response_status_code"),
                                                "{{server_address}}:{{server_port}} {{http_response_status_code}}")], "reqps"),
        graph("Trouble with engines",
              [(rate("taximeter_upstream_connect_failures_total", ANY, "taximeter_upstream, taximeter_cause"),
                "{{taximeter_upstream}}: {{taximeter_cause}}"),
               (rate("taximeter_upstream_protocol_faults_total", ANY, "taximeter_upstream, taximeter_cause"),
                "{{taximeter_upstream}}: bad HTTP, {{taximeter_cause}}"),
               (rate("taximeter_meter_oddities_total", ANY, "taximeter_kind"), "odd: {{taximeter_kind}}")], "ops"),
        bands("Health of engines", [(f"min by (taximeter_upstream) (taximeter_upstream_healthy{{{ANY}}})", "{{taximeter_upstream}}")],
              "Red while the last request of any gateway could not be sent, was answered 5xx, or broke off; nothing before the first."),
    ]),
    ("The gateway itself", [
        graph("Its own part of a request", quantiles("taximeter_gateway_duration_seconds"), "s",
              "From the request's head until it was sent to the engine; the ledger's reservation is in it."),
        graph("CPU for a request", f"{rate('process_cpu_time_seconds_total', ANY)} / ({rate('http_server_request_duration_seconds_count', ANY)} > 0)",
              "s", "All of the process, streams included."),
        graph("Memory", [(f"process_memory_usage_bytes{{{ANY}}}", "{{instance}}")], "bytes"),
        graph("Ledger", [(rate("taximeter_ledger_entries_total", ANY, "instance"), "{{instance}}: entries")], "ops"),
        graph("Not yet in the store", [(f"taximeter_store_lag{{{ANY}}}", "{{instance}}")], "short",
              "Entries of the journal that the store has not got: what bills are late by."),
        graph("Faults of ledger, store, receivers and our own",
              [(f"sum(increase({name}{{{ANY}}}[$__rate_interval])) or vector(0)", word) for name, word in [
                  ("taximeter_ledger_entries_lost_total", "entries lost"),
                  ("taximeter_ledger_entries_rejected_total", "entries rejected"), ("taximeter_ledger_slow_total", "slow disk"),
                  ("taximeter_store_faults_total", "store"), ("taximeter_push_faults_total", "events"),
                  ("taximeter_otlp_faults_total", "OTLP"), ("taximeter_panics_total", "panics")]], "short"),
    ]),
], CHOICES)

COST = f'taximeter_cost_total{{{REQUEST}, taximeter_currency="$currency"}}'
TOKENS = f"taximeter_tokens_total{{{REQUEST}}}"
# Seconds of this month that are over, and that it has.
GONE = "((day_of_month() - 1) * 86400 + hour() * 3600 + minute() * 60)"
MONTH = "(days_in_month() * 86400)"
TO_DATE = {"timeFrom": "now/M", "hideTimeOverride": False}
# Tokens of gateways that reckon in another currency cost nothing in this one.
MILLION = ("1e6 * sum{by} (rate({cost}[$__rate_interval])) "
           "/ (sum{by} (rate({tokens}[$__rate_interval]) and on (job, instance) {cost}) > 0)")
# In the currency that is chosen, and so without a sign.
MONEY = "short"
CURRENCY = choice_of_one("currency", "Currency", 'taximeter_cost_total{job=~"$job"}', "taximeter_currency")

# One histogram with both types, or one for each, by generation.
SIZES = " or ".join([rate("gen_ai_client_token_usage_bucket", by="le, gen_ai_token_type")] + [
    f"label_replace({rate(f'gen_ai_client_inference_operation_{kind}_tokens_bucket', by='le')}, 'gen_ai_token_type', '{kind}', '', '')"
    for kind in ("input", "output")])

dashboard("money", "Taximeter: tokens and money",
          "Who spends what on which model. Numbers here are approximations; the ledger has them exactly: taximeter bill.", [
    ("Spend", [
        stat("Spend per hour, $currency", f"sum(rate({COST}[$__rate_interval])) * 3600", MONEY),
        stat("Month to date, $currency", f"sum(increase({COST}[$__range]))", MONEY, "Of the calendar month in UTC.", **TO_DATE),
        stat("Month at this rate, $currency", f"sum(increase({COST}[$__range])) / scalar({GONE}) * scalar({MONTH})", MONEY,
             "Month to date, drawn out to its end.", **TO_DATE),
        stat("Per million tokens, $currency", MILLION.format(by="", cost=COST, tokens=TOKENS), MONEY, "Input and output."),
        stat("Reported by engines", share(f'taximeter_tokens_total{{{REQUEST}, taximeter_usage_source="reported"}}', TOKENS),
             "percentunit", "Share of tokens that engines have reported; the others we have counted."),
        stat("Without a price", f"({share(f'taximeter_unpriced_total{{{REQUEST}}}', REQUESTS)}) or vector(0)", "percentunit",
             "Share of requests whose cost is unknown."),
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
        graph("Where numbers come from",
              [(rate("taximeter_tokens_total", by="taximeter_usage_source"), "{{taximeter_usage_source}}"),
               (f"{rate('taximeter_usage_recounts_total', ANY + ', taximeter_usage_agrees=' + chr(34) + 'false' + chr(34))}",
                "reports that differ from our count")], "short"),
    ]),
], [*CHOICES, CURRENCY], timezone="utc")

TARGET = "taximeter:slo_target:ratio"


def burn(window):
    return f"taximeter:slo_bad:ratio{window}{{job=~\"$job\"}} / on (slo) group_left () (1 - {TARGET})"


dashboard("objectives", "Taximeter: objectives",
          "How soon answers begin, how long they take, how many are served, against their targets. "
          "Needs the rules of deploy/prometheus/taximeter.rules.yaml, which hold bounds and targets.", [
    ("Of 30 days", [
        graph("What is left of what may be bad",
              [(f"1 - sum by (slo) (increase(taximeter:slo_bad:total{{job=~\"$job\"}}[30d])) "
                f"/ (sum by (slo) (increase(taximeter:slo_all:total{{job=~\"$job\"}}[30d])) > 0) "
                f"/ on (slo) (1 - {TARGET})", "{{slo}}")], "percentunit", width=12, field={"min": None}),
        graph("Targets", [(TARGET, "{{slo}}")], "percentunit", width=12),
    ]),
    ("How fast it is used up: at 1, it lasts 30 days", [
        graph("Within 5 minutes", [(burn("5m"), "{{slo}}")], "short"),
        graph("Within an hour", [(burn("1h"), "{{slo}}")], "short"),
        graph("Within 6 hours", [(burn("6h"), "{{slo}}")], "short"),
    ]),
    ("Bad requests", [
        graph("Share that is bad, 5 minutes", [('taximeter:slo_bad:ratio5m{job=~"$job"}', "{{slo}}")], "percentunit"),
        graph("Requests that count", [('sum by (slo) (rate(taximeter:slo_all:total{job=~"$job"}[$__rate_interval]))', "{{slo}}")],
              "reqps"),
        graph("Alerts", [('sum by (alertname) (ALERTS{alertname=~"Taximeter.*", alertstate="firing"}) or vector(0)',
                          "{{alertname}}")], "short"),
    ]),
], CHOICES[:1], time={"from": "now-24h", "to": "now"})
