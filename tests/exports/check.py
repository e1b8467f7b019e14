"""Exports of the real binary: FOCUS's rules, sums in DuckDB, manifests, a bucket.

Holds the files against our own list of columns, against FinOps' rule model where $FOCUS_RULES has it, against the
schema of CloudEvents where $CLOUDEVENTS_SCHEMA has it, and against the bill; sends them to moto's S3 and reads them back.
Opens a file of a day and one of hours, which the store keeps, in DuckDB and in pyarrow.
Ends with 1 where anything differs.
"""

import hashlib
import json
import os
import pathlib
import sys
import tempfile
from collections import Counter
from decimal import Decimal

import duckdb
import jsonschema

import bucket
import dataset
import days
import hours
import model
import samples
import stage
from stage import taximeter

TEXT, TIME, NUMBER = (lambda cell: bool(cell.strip()), lambda cell: dataset.DATE_TIME.fullmatch(cell),
                      lambda cell: dataset.NUMBER.fullmatch(cell))
# Mandatory columns of 1.2 and the conditional ones that apply here, from its specification: what a cell must be,
# and whether it may be null.
COLUMNS = {
    "BilledCost": (NUMBER, False), "BillingAccountId": (TEXT, False), "BillingAccountName": (TEXT, True),
    "BillingCurrency": (dataset.CURRENCY.fullmatch, False), "BillingPeriodStart": (TIME, False),
    "BillingPeriodEnd": (TIME, False),
    "ChargeCategory": ({"Usage", "Purchase", "Tax", "Credit", "Adjustment"}.__contains__, False),
    "ChargeClass": ({"Correction"}.__contains__, True), "ChargeDescription": (TEXT, True),
    "ChargeFrequency": ({"One-Time", "Recurring", "Usage-Based"}.__contains__, False),
    "ChargePeriodStart": (TIME, False), "ChargePeriodEnd": (TIME, False), "ContractedCost": (NUMBER, False),
    "ContractedUnitPrice": (NUMBER, True), "EffectiveCost": (NUMBER, False), "ListCost": (NUMBER, False),
    "ListUnitPrice": (NUMBER, True), "PricingQuantity": (NUMBER, True),
    "PricingUnit": (dataset.UNIT.fullmatch, True),
    "PricingCategory": ({"Standard", "Dynamic", "Committed", "Other"}.__contains__, True),
    "PricingCurrency": (dataset.CURRENCY.fullmatch, False), "PricingCurrencyContractedUnitPrice": (NUMBER, True),
    "PricingCurrencyEffectiveCost": (NUMBER, False), "PricingCurrencyListUnitPrice": (NUMBER, True),
    "ConsumedQuantity": (NUMBER, True), "ConsumedUnit": (dataset.UNIT.fullmatch, True), "InvoiceId": (TEXT, True),
    "InvoiceIssuerName": (TEXT, False), "ProviderName": (TEXT, False), "PublisherName": (TEXT, False),
    "ServiceCategory": ({"AI and Machine Learning"}.__contains__, False),
    "ServiceSubcategory": ({"Generative AI"}.__contains__, False), "ServiceName": (TEXT, False),
    "SkuId": (TEXT, True), "SkuMeter": (TEXT, True), "SkuPriceId": (TEXT, True),
    "SkuPriceDetails": (model.texts.is_key_value, True), "SubAccountId": (TEXT, True), "SubAccountName": (TEXT, True),
    "Tags": (model.texts.is_key_value, True),
}
# What was sold has it, and a credit has not.
SOLD = ("ConsumedQuantity", "ContractedUnitPrice", "ListUnitPrice", "PricingCategory",
        "PricingCurrencyContractedUnitPrice", "PricingCurrencyListUnitPrice", "PricingQuantity", "SkuId", "SkuPriceId")
# Prices, and the costs that they make.
PRODUCTS = (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost"),
            ("PricingCurrencyContractedUnitPrice", "PricingCurrencyEffectiveCost"))
EVENTS = {"taximeter.request", "taximeter.correction", "taximeter.credit", "taximeter.gpu_share"}
FORMATS = jsonschema.Draft7Validator.FORMAT_CHECKER
assert {"date-time", "uri-reference"} <= FORMATS.checkers.keys(), "formats would not be looked at"
wrong = []


def expect(kept, text):
    if not kept:
        wrong.append(text)
        print(f"WRONG: {text}")


def own_rules(columns, rows):
    checked = 0
    for name, (good, nullable) in COLUMNS.items():
        expect(name in columns, f"column {name} is missing")
        for row in rows if name in columns else []:
            cell = row[name]
            expect(nullable or cell is not None, f"{name} is null: {row}")
            expect(cell is None or good(cell), f"{name} cannot be {cell!r}")
            checked += 1
    for name in columns:
        expect(name in COLUMNS or name.startswith("x_"), f"column {name} is neither FOCUS's nor custom")
    for row in rows:
        sold = row["ChargeCategory"] == "Usage"
        for name in SOLD:
            expect((row[name] is not None) == sold, f"{name} of {row['ChargeCategory']}: {row}")
        for cost in ("EffectiveCost", "ContractedCost", "ListCost") if not sold else ():
            expect(row[cost] == row["BilledCost"], f"{cost} of a credit is not what it takes off: {row}")
        for price, cost in PRODUCTS if sold else ():
            product = Decimal(row[price]) * Decimal(row["PricingQuantity"])
            expect(product == Decimal(row[cost]), f"{price} × PricingQuantity is not {cost}: {row}")
        if row["PricingCurrency"] != row["BillingCurrency"]:
            rate = Decimal(stage.EXCHANGE["rate"])
            for told, billed in (("PricingCurrencyListUnitPrice", "ListUnitPrice"),
                                 ("PricingCurrencyEffectiveCost", "EffectiveCost")):
                expect(Decimal(row[told]) * rate == Decimal(row[billed]),
                       f"{told} is not in {row['PricingCurrency']}: {row}")
    print(f"our rules: {len(rows)} rows, {len(columns)} columns, {checked} cells")


def rule_model(columns, rows):
    path = os.environ.get("FOCUS_RULES", "")
    if not os.path.exists(path):
        print(f"FinOps' rule model: not there ({path}); our own rules alone were checked")
        return
    checked = model.Model(path, columns, rows).check()
    outcomes = Counter(checked.outcome.values())
    applied = len(checked.outcome) - outcomes["skipped"]
    print(f"FinOps' rule model: {len(checked.rules)} rules, {applied} apply and were checked: "
          f"{outcomes['passed']} passed, {outcomes['failed']} failed, "
          f"{outcomes['nothing to hold it against']} had no row to hold against, {outcomes['not chosen']} "
          f"are alternatives not chosen; {outcomes['skipped']} skipped:")
    for why, count in checked.why.most_common():
        print(f"  {count:4} {why}")
    for name, outcome in checked.outcome.items():
        if outcome == "failed":
            criteria = checked.rules[name]["ValidationCriteria"]
            rows_failed = sorted(checked.failed_at[name])[:3]
            expect(False, f"{name} ({criteria['Keyword']}): {criteria['MustSatisfy']} rows {rows_failed}")


def kinds(rows):
    """Every kind of row is there: nothing that a rule says of it was held against nothing."""
    found = Counter()
    for row in rows:
        found["credit"] += row["ChargeCategory"] == "Credit"
        found["correction of an invoiced month"] += row["ChargeClass"] == "Correction"
        found["correction before that"] += row["BilledCost"].startswith("-") and row["ChargeClass"] is None \
            and row["ChargeCategory"] == "Usage"
        found["what is priced in another currency"] += row["PricingCurrency"] == stage.EXCHANGE["from"]
        found["idle GPUs"] += row["SubAccountId"] == "idle/gpus"
    print(f"rows: {', '.join(f'{count} of {kind}' for kind, count in found.items())}")
    expect(all(found.values()), f"not every kind of row is there: {found}")


def cloudevents(folder, terms):
    """Every kind of event is what the schema of CloudEvents says, and its source and id are its own."""
    file = folder / "events.json"
    taximeter("bill", *terms, "--format", "cloudevents", "-o", str(file))
    events = [event for batch in file.read_text().splitlines() for event in json.loads(batch)]
    kinds = Counter(event["type"] for event in events)
    expect(kinds.keys() == EVENTS, f"events are of {sorted(kinds)}")
    expect(len({(event["source"], event["id"]) for event in events}) == len(events), "an event is there twice")
    path = os.environ.get("CLOUDEVENTS_SCHEMA", "")
    if not os.path.exists(path):
        print(f"CloudEvents' schema: not there ({path}); {len(events)} events were held against nothing")
        return
    with open(path, encoding="utf-8") as schema:
        checker = jsonschema.Draft7Validator(json.load(schema), format_checker=FORMATS)
    for event in events:
        for fault in checker.iter_errors(event):
            expect(False, f"{fault.json_path} of {event['type']}: {fault.message}")
    print(f"CloudEvents' schema: {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}")


def sums(relation):
    return {tenant: Decimal(cost) for tenant, cost in relation.fetchall()}


def owed_by(bill):
    """What each tenant owes, credits taken off."""
    owed = {row["tenant"]: Decimal(row["cost"]) for row in bill["rows"] if row["cost"] is not None}
    for credit in bill["credits"]:
        owed[credit["tenant"]] -= Decimal(credit["amount"])
    return owed


def in_duckdb(folder, bill, posted):
    """What DuckDB adds up is the bill's; of records, what they cost when they were posted."""
    owed = owed_by(bill)
    csv, parquet = folder / "focus.csv", folder / "focus.parquet"
    # Numbers of a CSV are texts first: as floating point they would not be what is written.
    by_tenant = "select SubAccountId, sum(BilledCost::decimal(38, 18)) from {} group by all"
    for path, relation in ((csv, f"read_csv('{csv}', all_varchar = true)"), (parquet, f"'{parquet}'")):
        found = sums(duckdb.sql(by_tenant.format(relation)))
        expect(found == owed, f"{path.name} adds up to {found}, the bill to {owed}")
    exact = duckdb.sql(f"select count(*) from '{parquet}' where ListUnitPrice * PricingQuantity <> ListCost "
                       "or ContractedUnitPrice * PricingQuantity <> ContractedCost").fetchall()
    expect(exact == [(0,)], f"{exact} rows of {parquet.name} are no product of theirs")
    types = dict(duckdb.sql(f"select column_name, column_type from (describe select * from '{parquet}')").fetchall())
    expect(types["BilledCost"] == "DECIMAL(38,18)" and types["ChargePeriodStart"] == "TIMESTAMP WITH TIME ZONE",
           f"types of {parquet.name}: {types}")
    records = folder / "records"
    hive = f"read_parquet('{records}/**/*.parquet', hive_partitioning = true)"
    found = sums(duckdb.sql(f"select tenant, sum(cost) from {hive} where cost is not null group by all"))
    expect(found == owed_by(posted), f"records add up to {found}, their bill to {owed_by(posted)}")
    (counted,) = duckdb.sql(f"select count(*), sum(input_tokens) from {hive} where date >= '2026-01-01'").fetchall()
    total = posted["total"]
    expect(counted == (total["requests"], total["input_tokens"]), f"records: {counted}, the bill: {total}")
    print(f"DuckDB {duckdb.__version__}: CSV, Parquet and {counted[0]} records in folders add up to the bill: "
          f"{sum(owed.values())} {bill['currency']} of {len(owed)} tenants")


def manifests(folder):
    files = 0
    for path in folder.rglob("*.manifest.json"):
        told = json.loads(path.read_text())
        for file in told["files"]:
            content = (path.parent / file["path"]).read_bytes()
            expect(hashlib.sha256(content).hexdigest() == file["sha256"] and len(content) == file["bytes"],
                   f"{file['path']} is not what its manifest says")
            files += 1
        expect(sum(file["rows"] for file in told["files"]) == told["rows"], f"{path.name}: rows do not add up")
    print(f"manifests: {files} files as told")


def main():
    with tempfile.TemporaryDirectory() as temporary, stage.ledger(temporary) as data:
        folder, ledger = pathlib.Path(temporary), ("--data-dir", str(data))
        by_tenant = ("--by", "tenant", "--format", "json")
        posted = json.loads(taximeter("bill", *ledger, *by_tenant))
        period = stage.until_now()
        stage.correct(folder, period)
        terms = (*ledger, *period, "--config", str(folder / "taximeter.yaml"))
        bill = json.loads(taximeter("bill", *terms, *by_tenant))
        (folder / "records").mkdir()
        taximeter("bill", *ledger, "--format", "parquet", "-o", str(folder / "records"))
        for form, name in (("focus", "focus.csv"), ("focus-parquet", "focus.parquet")):
            taximeter("bill", *terms, "--format", form, "-o", str(folder / name))
        columns, rows = dataset.read(folder / "focus.csv")
        expect(len(rows) >= 7, f"only {len(rows)} rows")
        own_rules(columns, rows)
        kinds(rows)
        rule_model(columns, rows)
        cloudevents(folder, terms)
        in_duckdb(folder, bill, posted)
        manifests(folder)
        bucket.check(folder, ledger, expect)
        days.check(folder, expect)
        hours.check(folder, taximeter, expect)
        samples.check(folder, expect)
    print(f"exports: {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


main()
