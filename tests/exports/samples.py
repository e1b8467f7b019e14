"""Samples of the fleet in DuckDB, by the book's own question, and as the gateway tells them."""

import json
import math
import os
import pathlib
import re
import time
import urllib.parse
import urllib.request

import duckdb

from programs import SECONDS_MAX, running

BOOK = pathlib.Path(__file__).parents[2] / "docs" / "fleet.md"
QUANTITY = "system.memory.linux.available"


def serving(folder):
    """The gateway, which reads its own host and nothing else."""
    file = folder / "taximeter.yaml"
    file.write_text(json.dumps({
        "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "data_dir": str(folder / "data"),
        "upstreams": [{"name": "none", "url": "http://127.0.0.1:9", "dialect": "openai"}],
        "fleet": {"engines": "off"},
    }))
    return running("stderr", os.environ["TAXIMETER_BINARY"], "serve", "--config", str(file))


def admin_of(log):
    for line in log:
        if json.loads(line).get("event") == "listening":
            return json.loads(line)["admin"]
    raise AssertionError("the gateway did not start")


def ask(admin, path, **query):
    with urllib.request.urlopen(f"http://{admin}{path}?{urllib.parse.urlencode(query)}", timeout=SECONDS_MAX) as answer:
        return json.load(answer)


def mean_of(kept):
    """The mean of minutes: each value holds until the next one of its minute, for 15 seconds at most."""
    minutes = {}
    for (at, value), (after, _) in zip(kept, [*kept[1:], (math.inf, None)]):
        minute = at // 60
        minutes.setdefault(minute, []).append((min(after, minute * 60 + 60, at + 15) - at, value))
    means = [sum(held * value for held, value in of) / sum(held for held, _ in of) for of in minutes.values()]
    return sum(means) / len(means)


def check(parent, expect):
    folder = parent / "samples"
    folder.mkdir()
    with serving(folder) as log:
        admin, end = admin_of(log), time.monotonic() + SECONDS_MAX
        while not any(source["asked"] > 3 for source in ask(admin, "/api/v1/fleet")["sources"]):
            expect(time.monotonic() < end, "the host was not read")
            time.sleep(0.2)
    question = re.search(r"```sql\n(SELECT.*?)```", BOOK.read_text(), re.DOTALL)[1]
    for said, meant in (("taximeter-data", str(folder / "data")), ("hw.power", QUANTITY)):
        expect(said in question, f"the book's question does not say {said}")
        question = question.replace(said, meant)
    ((_, _, of_book),) = duckdb.sql(question).fetchall()
    files = folder / "data" / "samples" / "1s" / "*.parquet"
    kept = duckdb.sql(f"select epoch(time)::bigint, value / 10 ** scale from '{files}' "
                      f"where quantity = '{QUANTITY}' and statistic = 'mean' order by time").fetchall()
    with serving(folder) as log:
        told = ask(admin_of(log), "/api/v1/fleet/samples", quantity=QUANTITY, statistic="mean", step=1)
    points = [tuple(point) for point in told["series"][0]["points"]]
    expect(len(kept) >= 3 and kept == points, f"DuckDB reads {kept}, and the gateway tells {points}")
    mean = mean_of(kept)
    expect(abs(of_book - mean) < 1e-6 * mean, f"the book's question answers {of_book}, and the seconds have {mean}")
    print(f"samples: DuckDB reads {len(kept)} of the host by the second, as the gateway tells them, and answers the book's question")
