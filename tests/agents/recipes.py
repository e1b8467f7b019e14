"""Reads the recipes of the book: what a page says to write, and to type."""

import dataclasses
import pathlib
import re

DOCS = pathlib.Path(__file__).parents[2] / "docs"
# The gateway of the recipes.
ADDRESS = "http://127.0.0.1:8080"
BLOCK = re.compile(r"^```(.*?)\n(.*?)^```$", re.M | re.S)


@dataclasses.dataclass
class Way:
    """One way to start a client."""

    # Text by name; names that begin with `~/` are in the home folder.
    files: dict[str, str]
    script: str


@dataclasses.dataclass
class Recipe:
    text: str
    install: str
    ways: list[Way]


def recipe(page):
    """What a page says. A file that stands behind a way to start belongs to the next one, and replaces one of its name."""
    text = page.read_text()
    files, ways, install = {}, [], None
    for info, block in BLOCK.findall(text):
        name = re.search(r"\bfile=(\S+)$", info)
        if name:
            files = {**files, name[1]: block}
        elif info == "sh install":
            install = block
        elif info == "sh run":
            ways.append(Way(files, block))
    return Recipe(text, install, ways)


RECIPES = {page.stem: recipe(page) for page in sorted((DOCS / "recipes").glob("*.md"))}
INDEX = (DOCS / "recipes.md").read_text()


def configuration(engine, keys):
    """The configuration of the recipes, with this engine in place of the providers, and keys: tenant and SHA-256."""
    [text] = [block for info, block in BLOCK.findall(INDEX) if info == "yaml"]
    text = re.sub(r'https://[a-z.]+"', f'{engine}"', text)
    lines = [f'    - {{id: "{tenant}", tenant: "{tenant}", sha256: "{sha256}"}}\n' for tenant, sha256 in keys.items()]
    return text.replace("  keys:\n", "  keys:\n" + "".join(lines))
