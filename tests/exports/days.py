"""A file of a day in other readers: DuckDB and pyarrow find its sums, its indexes and its Bloom filters."""

import json
import os
import subprocess
from decimal import Decimal

import duckdb
import pyarrow.compute
import pyarrow.parquet

REQUESTS = 20_000


def check(folder, expect):
    """Writes a file with $DAY_WRITER, and compares what others read with what its footer says."""
    path = folder / "day.parquet"
    footer = json.loads(subprocess.check_output([os.environ["DAY_WRITER"], str(path), str(REQUESTS)]))
    owed = Decimal(footer["costs"]["USD"])

    ((count, cost, ids),) = duckdb.sql(f"select count(*), sum(cost), count(distinct id) from '{path}'").fetchall()
    expect((count, ids) == (footer["rows"], REQUESTS), f"DuckDB has {count} rows and {ids} ids, not {REQUESTS}")
    expect(cost == owed, f"DuckDB adds up to {cost}, the footer to {owed}")
    types = dict(duckdb.sql(f"select column_name, column_type from (describe select * from '{path}')").fetchall())
    told = {"id": "UUID", "ledger": "UUID", "cost": "DECIMAL(38,18)", "duration": "DECIMAL(18,6)",
            "started_at": "TIMESTAMP WITH TIME ZONE", "input_tokens": "BIGINT", "status": "INTEGER",
            "cost_lines": "JSON", "tenant": "VARCHAR"}
    expect({name: types.get(name) for name in told} == told, f"types of {path.name}: {types}")
    ((one, last),) = duckdb.sql(f"select id::text, seq from '{path}' order by started_at desc limit 1").fetchall()
    found = duckdb.sql(f"select seq from '{path}' where id = '{one}'::uuid").fetchall()
    expect(found == [(last,)], f"DuckDB finds {found} by id, not {last}")
    order = duckdb.sql(f"select count(*) from (select tenant, id, lag((tenant, id)) over (order by file_row_number) "
                       f"before from read_parquet('{path}', file_row_number = true)) "
                       "where (tenant, id) <= before").fetchall()
    expect(order == [(0,)], f"{order} rows are not in order")

    table = pyarrow.parquet.read_table(path)
    found = pyarrow.compute.sum(table["cost"]).as_py()
    expect(found == owed, f"pyarrow adds up to {found}, the footer to {owed}")
    expect(str(table.schema.field("id").type) == "extension<arrow.uuid>", f"id is {table.schema.field('id').type}")
    metadata = pyarrow.parquet.ParquetFile(path).metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for group in groups:
        columns = {column["path_in_schema"]: group.column(place)
                   for place, column in enumerate(group.to_dict()["columns"])}
        for name in ("id", "tenant", "started_at"):
            column = columns[name]
            expect(column.has_column_index and column.has_offset_index and column.statistics.has_min_max,
                   f"{name} has no indexes in pyarrow")
        expect(columns["id"].bloom_filter_offset, "id has no Bloom filter in pyarrow")
    kept = json.loads(metadata.metadata[b"taximeter.day"])
    expect(kept == footer, "the footer in pyarrow is another one")
    print(f"a file of a day: DuckDB {duckdb.__version__} and pyarrow {pyarrow.__version__} add up {count} requests to "
          f"{owed} USD, in {path.stat().st_size / count:.1f} bytes each")
