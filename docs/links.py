"""Checks every link of the repository's Markdown and of the built book.

A link must lead to a file of the repository and, with `#`, to a heading of it. A link to another
host must be a URL; whether it answers is not asked. Each page of docs/ must be in SUMMARY.md.

mdBook turns `../X.md` into `../X.html`, and leaves other links out of docs/ as they are. Both are
changed in the built book, so that they lead to the file in the repository.

usage: docs/links.py BOOK [URL]    see docs/build
"""

import html.parser
import os
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# What tests make pages of: the links are those of the page.
TEMPLATES = {ROOT / "tests/it/record_docs.md"}

# An inline link or image, `[text](target "title")`, and a reference, `[name]: target`.
INLINE = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.M)
FENCE = re.compile(r"^(\s*)(```+)[^\n]*\n.*?^\1\2\s*$", re.M | re.S)
SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.M)


def files() -> set[Path]:
    """What git tracks or would track."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(listed, cwd=ROOT).decode().split("\0")
    return {ROOT / name for name in names if name and (ROOT / name).exists()}


def slug(heading: str) -> str:
    """The anchor that GitHub and mdBook make of a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        anchor, nth = slug(heading), 0
        while (unique := f"{anchor}-{nth}" if nth else anchor) in found:
            nth += 1
        found.add(unique)
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def targets(text: str) -> list[str]:
    prose = SPAN.sub("", FENCE.sub("", text))
    return INLINE.findall(prose) + REFERENCE.findall(prose)


def is_url(target: str) -> bool:
    return re.match(r"[a-z][a-z0-9+.-]*:", target, re.I) is not None


def url_fault(target: str) -> str | None:
    url = urllib.parse.urlsplit(target)
    if url.scheme == "mailto":
        return None
    good = url.scheme in ("http", "https") and url.hostname and not re.search(r"[\s<>\"]", target)
    return None if good else "is no URL"


def fault_of(
    page: Path, target: str, all_files: set[Path], heads: dict[Path, set[str]]
) -> str | None:
    if is_url(target):
        return url_fault(target)
    name, _, anchor = target.partition("#")
    file = (page.parent / urllib.parse.unquote(name)).resolve() if name else page
    if not file.is_relative_to(ROOT) or not (
        file in all_files or any(file in other.parents for other in all_files)
    ):
        return "leads to no file of the repository"
    if anchor and file.suffix == ".md" and anchor not in heads[file]:
        return f"leads to no heading of {file.relative_to(ROOT)}"
    return None


def in_markdown(all_files: set[Path]) -> tuple[int, list[str]]:
    pages = sorted(file for file in all_files - TEMPLATES if file.suffix == ".md")
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    heads = {page: anchors(text) for page, text in texts.items()}
    number, faults = 0, []
    for page, text in texts.items():
        for target in targets(text):
            number += 1
            if fault := fault_of(page, target, all_files, heads):
                faults.append(f"{page.relative_to(ROOT)}: {target} {fault}")
    summary = {(DOCS / target).resolve() for target in targets(texts[DOCS / "SUMMARY.md"])}
    for page in pages:
        if page.is_relative_to(DOCS) and page not in summary and page.name != "SUMMARY.md":
            faults.append(f"{page.relative_to(ROOT)} is not in docs/SUMMARY.md")
    return number, faults


class Page(html.parser.HTMLParser):
    """The ids, links and images of a built page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("id", "name"):
                self.ids.add(value or "")
            elif name in ("href", "src") and value is not None:
                self.links.append(value)


def outward(page: Path, book: Path, link: str, base: str | None) -> str | None:
    """Where a link that leaves the book leads, if it does."""
    name, hash_, anchor = link.partition("#")
    if is_url(link) or not name:
        return None
    inside = Path(os.path.normpath(page.parent.relative_to(book) / urllib.parse.unquote(name)))
    if inside.parts[:1] != ("..",):
        return None
    file = Path(os.path.normpath(DOCS / inside))
    if file.suffix == ".html" and not file.exists():
        file = file.with_suffix(".md")
    if not file.exists() or not file.is_relative_to(ROOT):
        return None
    if base:
        path = urllib.parse.quote(str(file.relative_to(ROOT)))
        return f"{base.rstrip('/')}/{path}{hash_}{anchor}"
    return urllib.parse.quote(os.path.relpath(file, page.parent)) + hash_ + anchor


def in_book(book: Path, base: str | None) -> tuple[int, list[str]]:
    """Completes links to files that are not in the book, then checks those that stay in it."""
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(book.rglob("*.html"))}
    # What a server shows instead of a missing page has links from the root of the host.
    texts.pop(book / "404.html", None)
    pages = {page: Page(text) for page, text in texts.items()}
    number, faults = 0, []
    for page, parsed in pages.items():
        text = texts[page]
        for link in parsed.links:
            number += 1
            if other := outward(page, book, link, base):
                text = text.replace(f'"{link}"', f'"{other}"')
            elif is_url(link):
                if fault := url_fault(link):
                    faults.append(f"{page.relative_to(book)}: {link} {fault}")
            else:
                name, _, anchor = urllib.parse.unquote(link).partition("#")
                file = (page.parent / name).resolve() if name else page
                if not file.exists():
                    faults.append(f"{page.relative_to(book)}: {link} leads to no file of the book")
                elif anchor and file in pages and anchor not in pages[file].ids:
                    faults.append(f"{page.relative_to(book)}: {link} leads to no id of that page")
        page.write_text(text, encoding="utf-8")
    return number, faults


def main() -> int:
    book = Path(sys.argv[1]).resolve()
    base = sys.argv[2] if len(sys.argv) > 2 else None
    in_pages, faults = in_markdown(files())
    in_html, further = in_book(book, base)
    for fault in faults + further:
        print(fault)
    nowhere = len(faults + further)
    print(f"links: {in_pages} in Markdown, {in_html} in the book; {nowhere} lead nowhere")
    return 1 if nowhere else 0


if __name__ == "__main__":
    sys.exit(main())
