"""Rules that the model has in words alone, where a file tells whether they are kept.

A check sees the columns' names, a row, and all rows.
"""

import json
import re

import dataset

PASCAL = re.compile(r"(x_)?[A-Z][A-Za-z0-9]*")
PLACEHOLDERS = {"null", "none", "n/a", "na", "nan", "not applicable", "-"}
NUMERIC = re.compile(r".*(Cost|Quantity|UnitPrice)")
TIMES = ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")
KEY_VALUE = ("SkuPriceDetails", "Tags")
CURRENCIES = ("BillingCurrency", "PricingCurrency")
UNITS = ("ConsumedUnit", "PricingUnit")


def is_key_value(cell):
    return pairs(cell) is not None


def pairs(cell):
    """The pairs of a JSON object whose values are scalars; None where it is none."""
    try:
        read = json.loads(cell, object_pairs_hook=lambda read: read)
    except ValueError:
        return None
    scalar = (str, int, float, bool, type(None))
    keys = [key for key, _ in read] if isinstance(read, list) else []
    whole = cell.startswith("{") and len(set(keys)) == len(keys)
    return read if whole and all(isinstance(value, scalar) for _, value in read) else None


def every(names, check):
    return lambda columns, row, rows: all(check(row[name]) for name in columns
                                          if (name in names if isinstance(names, tuple) else names.fullmatch(name))
                                          and row[name] is not None)


def named(check):
    return lambda columns, row, rows: all(check(name) for name in columns)


def product(price, cost):
    def check(columns, row, rows):
        if row["ChargeClass"] == "Correction":
            return True
        a, b, c = (dataset.number(row[name]) for name in (price, "PricingQuantity", cost))
        return None in (a, b, c) or a * b == c
    return check


def one_per(key, *others):
    """Rows with one `key` have one of each of `others`."""
    seen = {}

    def check(columns, row, rows):
        if id(rows) not in seen:
            values = {}
            for other in rows:
                values.setdefault(other[key], set()).add(tuple(other[name] for name in others))
            seen.clear()
            seen[id(rows)] = values
        return row[key] is None or len(seen[id(rows)][row[key]]) == 1
    return check


def custom_last(columns, row, rows):
    return sorted(columns, key=lambda name: name.startswith("x_")) == columns


def not_null(name):
    return lambda columns, row, rows: row[name] is not None


def sold_has(name):
    return lambda columns, row, rows: row["ChargeCategory"] not in ("Usage", "Purchase") or row[name] is not None


def credit_is_billed(cost):
    """Credits of ours are related to no single charge."""
    return lambda columns, row, rows: row["ChargeCategory"] != "Credit" or row[cost] == row["BilledCost"]


numbers = every(NUMERIC, lambda cell: dataset.NUMBER.fullmatch(cell) is not None)
times = every(TIMES, lambda cell: dataset.DATE_TIME.fullmatch(cell) is not None)
key_values = every(KEY_VALUE, is_key_value)
no_blank = lambda columns, row, rows: all(cell is None or cell.strip() for cell in row.values())
no_placeholder = lambda columns, row, rows: all(
    cell is None or cell.strip().lower() not in PLACEHOLDERS for cell in row.values())

CHECKS = {
    "BilledCost-C-006-M": not_null("BillingCurrency"),
    "BillingPeriodStart-C-004-M": lambda columns, row, rows: row["BillingPeriodStart"] <= row["ChargePeriodStart"],
    "BillingPeriodEnd-C-004-M": lambda columns, row, rows: row["ChargePeriodEnd"] <= row["BillingPeriodEnd"],
    "ChargePeriodStart-C-004-M": lambda columns, row, rows: row["ChargePeriodStart"] < row["ChargePeriodEnd"],
    "ChargePeriodEnd-C-004-M": lambda columns, row, rows: row["ChargePeriodStart"] < row["ChargePeriodEnd"],
    "ColumnHandling-A-001-M": named(lambda name: PASCAL.fullmatch(name) is not None),
    "ColumnHandling-A-003-M": named(lambda name: name.removeprefix("x_").isalnum()),
    "ColumnHandling-A-005-O": named(lambda name: len(name) <= 50),
    "ColumnHandling-A-010-M": named(lambda name: name[0].isupper() or name.startswith("x_")),
    "ColumnHandling-A-011-O": named(lambda name: PASCAL.fullmatch(name) is not None),
    "ColumnHandling-A-012-O": custom_last,
    "ColumnHandling-A-013-O": custom_last,
    "ConsumedQuantity-C-008-C": every(("ConsumedQuantity",), lambda cell: dataset.NUMBER.fullmatch(cell) is not None),
    "ContractedCost-C-005-M": not_null("BillingCurrency"),
    "ContractedCost-C-008-C": credit_is_billed("ContractedCost"),
    "ContractedCost-C-009-C": product("ContractedUnitPrice", "ContractedCost"),
    "CurrencyFormat-A-001-C": every(CURRENCIES, lambda cell: dataset.CURRENCY.fullmatch(cell) is not None),
    "DateTimeFormat-A-001-M": times,
    "DateTimeFormat-A-002-M": times,
    "DateTimeFormat-A-004-M": times,
    "DateTimeFormat-A-005-M": times,
    "DateTimeFormat-A-006-M": times,
    "EffectiveCost-C-006-M": not_null("BillingCurrency"),
    "EffectiveCost-C-010-C": credit_is_billed("EffectiveCost"),
    "KeyValueFormat-A-001-M": key_values,
    "KeyValueFormat-A-002-M": key_values,
    "KeyValueFormat-A-003-M": key_values,
    "KeyValueFormat-A-004-M": key_values,
    "ListCost-C-005-M": not_null("BillingCurrency"),
    "ListCost-C-008-C": credit_is_billed("ListCost"),
    "ListUnitPrice-C-009-M": not_null("BillingCurrency"),
    "NullHandling-A-001-C": no_placeholder,
    "NullHandling-A-002-M": no_placeholder,
    "NumericFormat-A-002-M": numbers,
    "NumericFormat-A-003-M": numbers,
    "NumericFormat-A-004-M": numbers,
    "NumericFormat-A-005-M": numbers,
    "NumericFormat-A-006-M": numbers,
    "NumericFormat-A-007-M": numbers,
    "NumericFormat-A-008-M": numbers,
    "NumericFormat-A-009-M": numbers,
    "NumericFormat-A-010-M": numbers,
    "NumericFormat-A-011-M": numbers,
    "PricingCategory-C-008-C": every(("PricingCategory",), lambda cell: cell == "Standard"),
    "PricingCurrencyContractedUnitPrice-C-005-C": sold_has("PricingCurrencyContractedUnitPrice"),
    "PricingCurrencyContractedUnitPrice-C-008-C": every(("PricingCurrencyContractedUnitPrice",),
                                                        lambda cell: dataset.number(cell) >= 0),
    "PricingCurrencyContractedUnitPrice-C-009-C": not_null("PricingCurrency"),
    "PricingCurrencyEffectiveCost-C-006-M": not_null("PricingCurrency"),
    "PricingCurrencyListUnitPrice-C-009-M": not_null("PricingCurrency"),
    "PricingQuantity-C-009-C": product("ListUnitPrice", "ListCost"),
    "ServiceName-C-006-C": one_per("ServiceName", "ServiceCategory"),
    "SkuId-C-011-C": sold_has("SkuId"),
    "SkuMeter-C-006-O": one_per("SkuId", "SkuMeter"),
    "SkuPriceDetails-C-007-M": one_per("SkuPriceId", "SkuPriceDetails"),
    "SkuPriceDetails-C-017-C": every(("SkuPriceDetails",),
                                     lambda cell: all(key.startswith("x_") for key, _ in pairs(cell))),
    "SkuPriceDetails-C-002-O": every(("SkuPriceDetails",),
                                     lambda cell: all(PASCAL.fullmatch(key) for key, _ in pairs(cell))),
    "SkuPriceId-C-012-C": sold_has("SkuPriceId"),
    "SkuPriceId-C-014-C": one_per("SkuPriceId", "ListUnitPrice"),
    "StringHandling-A-001-M": lambda columns, row, rows: True,  # reading the file would have failed
    "StringHandling-A-007-M": no_blank,
    "SubAccountId-C-005-C": not_null("SubAccountId"),
    "UnitFormat-A-001-M": every(UNITS, lambda cell: dataset.UNIT.fullmatch(cell) is not None),
    "UnitFormat-A-002-O": every(UNITS, lambda cell: dataset.UNIT.fullmatch(cell) is not None),
    "UnitFormat-A-003-M": every(UNITS, lambda cell: cell.split()[-1][0].isupper()),
}
