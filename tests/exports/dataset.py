"""A FOCUS file as FOCUS means it: an empty cell is null, a number is exact."""

import csv
import re
from decimal import Decimal, InvalidOperation

NUMBER = re.compile(r"-?(\d+(\.\d+)?|\.\d+)(E-?\d+)?")
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
TIME_UNITS = "Years|Months|Days|Hours|Minutes|Seconds"
WORDS = r"[A-Za-z][A-Za-z0-9]*(?: [A-Za-z][A-Za-z0-9]*)*"
UNIT = re.compile(rf"(\d+ )?{WORDS}(-({TIME_UNITS})|/(\d+ )?{WORDS})?")
CURRENCY = re.compile(r"[A-Z]{3}")


def read(path):
    """The columns' names, and the rows by name."""
    with open(path, encoding="utf-8", errors="strict", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    with open(path, encoding="utf-8", newline="") as file:
        columns = next(csv.reader(file))
    assert len(set(columns)) == len(columns), "a column is there twice"
    assert all(None not in row and len(row) == len(columns) for row in rows), "a row is ragged"
    return columns, [{name: cell or None for name, cell in row.items()} for row in rows]


def number(cell):
    """Exact; None for what is no number."""
    try:
        return Decimal(cell) if cell is not None else None
    except InvalidOperation:
        return None
