"""Files of hours in other readers: DuckDB and pyarrow add them up to the bill."""

import json
import os
import pathlib
import subprocess
from decimal import Decimal

import duckdb
import pyarrow.compute
import pyarrow.parquet

REQUESTS = 20_000


def check(folder, taximeter, expect):
    """Makes a store with $HOURS_WRITER, and compares its bill with what others read in its files."""
    data = folder / "old"
    month = subprocess.check_output([os.environ["HOURS_WRITER"], str(data), str(REQUESTS)], text=True).strip()
    bill = json.loads(taximeter("bill", "--data-dir", str(data), "--month", month, "--by", "tenant", "--format", "json"))
    owed = {row["tenant"]: (row["requests"], row["input_tokens"], Decimal(row["cost"])) for row in bill["rows"]}
    expect(sum(requests for requests, *_ in owed.values()) == REQUESTS, f"the bill has {owed}")

    files = sorted(data.glob("hours/*.parquet"))
    expect([file.name for file in files] == [f"{month}.parquet"], f"files of hours: {files}")
    path = files[0]
    rows = duckdb.sql("select tenant, sum(requests)::bigint, sum(input_tokens)::bigint, sum(cost) "
                      f"from '{path}' group by tenant").fetchall()
    found = {tenant: tuple(sums) for tenant, *sums in rows}
    expect(found == owed, f"DuckDB adds up to {found}, the bill to {owed}")
    types = dict(duckdb.sql(f"select column_name, column_type from (describe select * from '{path}')").fetchall())
    told = {"hour": "TIMESTAMP WITH TIME ZONE", "tenant": "VARCHAR", "requests": "BIGINT", "cost": "DECIMAL(38,18)",
            "labels": "JSON", "correction": "BOOLEAN"}
    expect({name: types.get(name) for name in told} == told, f"types of {path.name}: {types}")

    table = pyarrow.parquet.read_table(path)
    cost = pyarrow.compute.sum(table["cost"]).as_py()
    expect(cost == sum(cost for *_, cost in owed.values()), f"pyarrow adds up to {cost}, the bill to {owed}")
    kept = json.loads(pyarrow.parquet.ParquetFile(path).metadata.metadata[b"taximeter.hours"])
    expect(Decimal(kept["costs"]["USD"]) == cost and kept["rows"] == table.num_rows, f"the footer says {kept}")
    expect(len(kept["covers"]) == len({hour.as_py().date() for hour in table["hour"]}), "the footer lacks a day")
    bytes_each = pathlib.Path(path).stat().st_size / table.num_rows
    print(f"a file of hours: DuckDB and pyarrow add up {table.num_rows} rows to {cost} USD, "
          f"in {bytes_each:.1f} bytes each")
