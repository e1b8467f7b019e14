"""Prints how easy each page is to read: Flesch's reading ease (more is easier), grade and words."""

import re
import sys

import textstat

# A page with less prose has no reading ease worth saying.
WORDS_MIN = 30


def prose(text: str) -> str:
    """The sentences of a page: without code, tables, marks and the targets of links."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.S | re.M)
    text = re.sub(r"^\|.*$", "", text, flags=re.M)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^\s*(?:[-*]|\d+\.) ", "", text, flags=re.M)
    return re.sub(r"[`*_#>]", "", text)


for page in sys.argv[1:]:
    with open(page, encoding="utf-8") as file:
        text = prose(file.read())
    words = len(text.split())
    if words < WORDS_MIN:
        continue
    ease, grade = textstat.flesch_reading_ease(text), textstat.flesch_kincaid_grade(text)
    print(f"{ease:6.1f} ease   grade {grade:5.1f}   {words:6} words   {page}")
