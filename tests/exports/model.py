"""FinOps' rule model, evaluated: every rule of the tree below the dataset, as its functions say."""

import json
from collections import Counter, defaultdict

import dataset
import texts

# What a metering gateway has of what the model asks about.
SUPPORTED = {
    "ACCOUNT_NAMING_SUPPORTED",
    "NEGOTIATED_PRICING_SUPPORTED",
    "PRICING_BILLING_CURRENCY_DIFFERENCES_SUPPORTED",
    "PUBLIC_PRICE_LIST_SUPPORTED",
    "SUB_ACCOUNT_SUPPORTED",
    "TAGGING_SUPPORTED",
    "UNIT_PRICING_SUPPORTED",
    "USAGE_MEASUREMENT_SUPPORTED",
}


class Model:
    """`passes(rule)` is, row by row, whether the rule holds there."""

    def __init__(self, path, columns, rows):
        with open(path, encoding="utf-8") as file:
            model = json.load(file)
        self.rules = model["ModelRules"]
        self.roots = [rule for data in model["ModelDatasets"].values() for rule in data["ModelRules"]]
        # Attributes hold for every column and hang below none.
        below = {dep for rule in self.rules.values() for dep in self.children(rule)}
        self.roots += [name for name, rule in self.rules.items()
                       if rule["EntityType"] == "Attribute" and name not in below]
        self.columns, self.rows = columns, rows
        self.outcome = {}
        self.why = Counter()

    def check(self):
        for root in self.roots:
            self.rule(root, range(len(self.rows)))
        unreached = [name for name in self.rules if name not in self.outcome]
        for name in unreached:
            self.skip(name, "below a rule that does not apply")
        return self

    @staticmethod
    def children(rule):
        return [item["ModelRuleId"] for item in rule["ValidationCriteria"]["Requirement"].get("Items", [])
                if item["CheckFunction"] == "CheckModelRule"]

    def skip(self, name, why):
        if name not in self.outcome:
            self.outcome[name] = "skipped"
            self.why[why] += 1

    def rule(self, name, rows):
        """The rows of `rows` where the rule does not hold."""
        rule = self.rules[name]
        criteria = rule["ValidationCriteria"]
        missing = set(rule["ApplicabilityCriteria"]) - SUPPORTED
        if missing:
            self.skip(name, f"not supported: {', '.join(sorted(missing))}")
            return set()
        keyword = criteria["Keyword"]
        if keyword == "MAY":
            self.skip(name, "allows, and asks for nothing (MAY)")
            return set()
        if not criteria["Requirement"]:
            return self.text(name, rule, rows)
        condition = criteria["Condition"]
        rows = [row for row in rows if not condition or self.holds(condition, row)]
        failed = self.failures(criteria["Requirement"], rows)
        self.note(name, failed, rows)
        return failed

    def text(self, name, rule, rows):
        """A rule in words alone: by a check of ours, where the file tells."""
        check = texts.CHECKS.get(name)
        if check is None:
            self.skip(name, "in words alone, and the file does not tell")
            return set()
        failed = {row for row in rows if not check(self.columns, self.rows[row], self.rows)}
        self.note(name, failed, rows)
        return failed

    def note(self, name, failed, rows):
        before = self.outcome.get(name)
        if failed or before is None or before == "nothing to hold it against":
            self.outcome[name] = "failed" if failed else "passed" if rows else "nothing to hold it against"
            self.failed_at = getattr(self, "failed_at", defaultdict(set))
            self.failed_at[name] |= set(failed)

    def failures(self, requirement, rows):
        function = requirement["CheckFunction"]
        rows = list(rows)
        if function == "AND":
            return set().union(*(self.failures(item, rows) for item in requirement["Items"]))
        if function == "OR":
            return self.alternatives(requirement["Items"], rows)
        if function == "CheckModelRule":
            return self.rule(requirement["ModelRuleId"], rows)
        if function == "ColumnPresent":
            return set() if requirement["ColumnName"] in self.columns else {-1}
        if function == "CheckDistinctCount":
            return self.distinct(requirement, rows)
        return {row for row in rows if not self.holds(requirement, row)}

    def alternatives(self, items, rows):
        """A rule that fails where another of them holds was not chosen."""
        parts = [self.failures(item, rows) for item in items]
        failed = set.intersection(*parts)
        for item, part in zip(items, parts):
            if part and not failed and item["CheckFunction"] == "CheckModelRule":
                self.outcome[item["ModelRuleId"]] = "not chosen"
        return failed

    def distinct(self, requirement, rows):
        values = defaultdict(set)
        for row in rows:
            cells = self.rows[row]
            values[cells[requirement["ColumnAName"]]].add(cells[requirement["ColumnBName"]])
        expected = int(requirement["ExpectedCount"])
        wrong = {value for value, others in values.items() if value is not None and len(others) != expected}
        return {row for row in rows if self.rows[row][requirement["ColumnAName"]] in wrong}

    def holds(self, check, row):
        """One check on one row; a column that is not there is null."""
        function, cells = check["CheckFunction"], self.rows[row]
        if function in ("AND", "OR"):
            return (all if function == "AND" else any)(self.holds(item, row) for item in check["Items"])
        if function == "ColumnByColumnEqualsColumnValue":
            names = ("ColumnAName", "ColumnBName", "ResultColumnName")
            a, b, product = (dataset.number(cells.get(check[name])) for name in names)
            return None in (a, b, product) or a * b == product
        if function in ("CheckSameValue", "CheckNotSameValue"):
            same = cells.get(check["ColumnAName"]) == cells.get(check["ColumnBName"])
            return same == (function == "CheckSameValue")
        cell = cells.get(check["ColumnName"])
        if function in ("CheckValue", "CheckNotValue"):
            return same_value(cell, check["Value"]) == (function == "CheckValue")
        if cell is None:
            return True
        if function == "CheckGreaterOrEqualThanValue":
            return dataset.number(cell) >= check["Value"]
        return FORMATS[function](cell)


def same_value(cell, value):
    if cell is None or value is None:
        return cell is value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return dataset.number(cell) == value
    return cell == str(value)


FORMATS = {
    "TypeString": lambda cell: True,
    "FormatString": lambda cell: bool(cell.strip()),
    "TypeDecimal": lambda cell: dataset.NUMBER.fullmatch(cell) is not None,
    "FormatNumeric": lambda cell: dataset.NUMBER.fullmatch(cell) is not None,
    "CheckDecimalValue": lambda cell: dataset.NUMBER.fullmatch(cell) is not None,
    "TypeDateTime": lambda cell: dataset.DATE_TIME.fullmatch(cell) is not None,
    "FormatDateTime": lambda cell: dataset.DATE_TIME.fullmatch(cell) is not None,
    "FormatUnit": lambda cell: dataset.UNIT.fullmatch(cell) is not None,
    "FormatCurrency": lambda cell: dataset.CURRENCY.fullmatch(cell) is not None,
    "CheckNationalCurrency": lambda cell: dataset.CURRENCY.fullmatch(cell) is not None,
    "FormatKeyValue": texts.is_key_value,
}
