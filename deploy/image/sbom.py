"""What the program is made of: a CycloneDX list, and the licences with their texts.

usage: sbom.py TARGET FOLDER    writes FOLDER/sbom.cdx.json and FOLDER/LICENSES.txt

Exactly the crates that are linked into `taximeter` for TARGET, as cargo resolves them for that program alone: none of
tests, of build scripts or of macros. Beside them what crates carry (C libraries, OpenAI's vocabularies), Rust's
standard library and the C library. The same tree and toolchain make the same bytes. For a musl target the environment
names the folder of zig's libraries as TAXIMETER_ZIG_LIBRARY: it has the texts that Rust does not carry.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path
from urllib.parse import quote

PROGRAM = "taximeter-proxy"
# Files of a crate with the texts of its licences, in whichever folder.
TEXT = re.compile(r"(licen[cs]e|copying|notice|unlicense|copyright)([-_.].*)?", re.IGNORECASE)
# Code of a crate's repository that is no part of what is built.
ASIDE = {"benches", "benchmarks", "contrib", "examples", "sqlcipher", "test", "testdata", "tests", "wasm-shim"}
TEXT_BYTES_MAX = 200_000


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked(target):
    """Name and version of each crate in the program."""
    tree = output("cargo", "tree", "--locked", "--package", PROGRAM, "--edges", "normal,no-proc-macro",
                  "--target", target, "--prefix", "none", "--no-dedupe", "--format", "{p}")
    return {tuple(line.split()[:2]) for line in tree.splitlines() if line}


def packages(target):
    """What cargo knows of each crate, in the order of their names."""
    wanted = {(name, version.removeprefix("v")) for name, version in linked(target)}
    known = json.loads(output("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target))
    found = [package for package in known["packages"] if (package["name"], package["version"]) in wanted]
    if len(found) != len(wanted):
        raise SystemExit(f"sbom.py: cargo tree has {len(wanted)} crates, cargo metadata {len(found)} of them")
    return sorted(found, key=lambda package: (package["name"], package["version"])), known


def defined(path, pattern):
    """What a header says of its version."""
    return re.search(pattern, path.read_text()).group(1)


def carried(package, folder):
    """What is in a crate that is not its own: name, version, licence, where it comes from."""
    match package["name"]:
        case "libsqlite3-sys":
            version = defined(folder / "sqlite3/sqlite3.h", r'#define SQLITE_VERSION +"([^"]+)"')
            return [("sqlite", version, "blessing", "https://sqlite.org")]
        case "zstd-sys":
            return [("zstd", package["version"].split("+zstd.")[1], "BSD-3-Clause", "https://github.com/facebook/zstd")]
        case "libmimalloc-sys":
            header = next(folder.glob("c_src/mimalloc/v3/include/mimalloc.h"))
            version = defined(header, r"#define MI_MALLOC_VERSION +(\d+)")
            return [("mimalloc", version, "MIT", "https://github.com/microsoft/mimalloc")]
    return []


def system(target, known):
    """What stands beneath the crates: Rust's library, the C library, the vocabularies packed at build time."""
    rust = output("rustc", "--version").split()[1]
    yield "rust-std", rust, "MIT OR Apache-2.0", "https://github.com/rust-lang/rust"
    if target.endswith("-gnu"):
        package = output("dpkg-query", "--show", "--showformat", "${Version}", "libc6-dev")
        yield "glibc", package, "LGPL-2.1-or-later", "https://sourceware.org/glibc"
    if target.endswith("-musl"):
        yield "musl", musl_version(target), "MIT", "https://git.musl-libc.org/cgit/musl"
        llvm = re.search(r"LLVM version: (\S+)", output("rustc", "-vV")).group(1)
        yield "llvm-libunwind", llvm, "Apache-2.0 WITH LLVM-exception", "https://github.com/llvm/llvm-project"
    tiktoken = next(package for package in known["packages"] if package["name"] == "tiktoken-rs")
    yield "tiktoken-rs", tiktoken["version"], tiktoken["license"], tiktoken["repository"]


def musl_version(target):
    """The version of the C library that Rust carries for a target. Zig, which links, carries the same."""
    library = Path(output("rustc", "--print", "sysroot").strip(), "lib/rustlib", target, "lib/self-contained/libc.a")
    object_file = subprocess.run(["ar", "p", library, "version.lo"], check=True, capture_output=True).stdout
    return re.search(rb"\b(\d+\.\d+\.\d+)\0", object_file).group(1).decode()


def texts(package, folder):
    """The texts of licences in a crate, by their file's name."""
    files = (file for file in folder.rglob("*") if TEXT.fullmatch(file.name) and file.is_file())
    for file in sorted(files):
        within = file.relative_to(folder)
        if not ASIDE.intersection(within.parts) and file.suffix not in {".rs", ".py", ".sh", ".html", ".yml", ".json"}:
            yield str(within), file.read_bytes()[:TEXT_BYTES_MAX].decode(errors="replace").strip() + "\n"


def gather(gathered, text, owner):
    """Keeps each text once, however its lines are broken."""
    gathered.setdefault(" ".join(text.split()).casefold(), (text, []))[1].append(owner)


def purl(kind, name, version):
    return f"pkg:{kind}/{name}@{quote(version)}"


def component(name, version, licence, source, ref, digest=None):
    found = {"type": "library", "bom-ref": ref, "name": name, "version": version, "purl": ref}
    if digest:
        found["hashes"] = [{"alg": "SHA-256", "content": digest}]
    if licence:
        found["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    if source:
        found["externalReferences"] = [{"type": "vcs", "url": source}]
    return found


def main(target, folder):
    crates, known = packages(target)
    lock = tomllib.loads(Path("Cargo.lock").read_text())["package"]
    digests = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock}
    components, listed, gathered, bare = [], [], {}, []
    for package in crates:
        root = Path(package["manifest_path"]).parent
        name, version = package["name"], package["version"]
        licence = package["license"] or "as its files say"
        if name != PROGRAM:
            components.append(component(name, version, package["license"], package["repository"],
                                        purl("cargo", name, version), digests[name, version]))
        listed.append(f"{name} {version}: {licence}")
        for other in carried(package, root):
            components.append(component(*other, purl("generic", *other[:2])))
            listed.append(f"{other[0]} {other[1]} (in {name}): {other[2]}")
        own = package["source"] is None
        found = [("LICENSE", Path("LICENSE").read_text())] if own else list(texts(package, root))
        if not found:
            bare.append(f"{name} {version}: {licence}, by {', '.join(package['authors']) or 'its authors'}")
        for file, text in found:
            gather(gathered, text, f"{name} {version} ({file})")
    for other in system(target, known):
        kind = "cargo" if other[0] == "tiktoken-rs" else "generic"
        components.append(component(*other, purl(kind, *other[:2])))
        listed.append(f"{other[0]} {other[1]}: {other[2]}")
    if target.endswith("-gnu"):
        gather(gathered, Path("/usr/share/common-licenses/LGPL-2.1").read_text(), "glibc")
        gather(gathered, Path("/usr/share/doc/libc6/copyright").read_text(), "glibc (copyright)")

    if target.endswith("-musl"):
        zig = Path(os.environ["TAXIMETER_ZIG_LIBRARY"])
        gather(gathered, (zig / "libc/musl/COPYRIGHT").read_text(), "musl (COPYRIGHT)")
        gather(gathered, (zig / "libunwind/LICENSE.TXT").read_text(), "llvm-libunwind (LICENSE.TXT)")

    program = next(package for package in crates if package["name"] == PROGRAM)
    edges = {node["id"]: node for node in known["resolve"]["nodes"]}
    ids = {package["id"]: purl("cargo", package["name"], package["version"]) for package in crates}
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component("taximeter", program["version"], program["license"], None,
                                            ids[program["id"]]) | {"type": "application"}},
        "components": sorted(components, key=lambda entry: entry["bom-ref"]),
        "dependencies": [
            {"ref": ref, "dependsOn": sorted({ids[edge["pkg"]] for edge in edges[key]["deps"] if edge["pkg"] in ids})}
            for key, ref in sorted(ids.items(), key=lambda pair: pair[1])
        ],
    }
    content = json.dumps(bom, sort_keys=True)
    number = uuid.UUID(bytes=hashlib.sha256(content.encode()).digest()[:16], version=4)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sbom.cdx.json").write_text(json.dumps({"serialNumber": f"urn:uuid:{number}"} | bom, indent=1) + "\n")

    line = "=" * 80 + "\n"
    parts = ["Taximeter is under Apache-2.0. What is linked into the program, and its licences:\n\n",
             "\n".join(listed), "\n\n",
             "Crates that carry no text of their licence; the texts are those that others carry below:\n\n",
             "\n".join(bare), "\n"]
    for text, owners in sorted(gathered.values(), key=lambda pair: pair[1]):
        parts += ["\n", line, "\n".join(owners), "\n", line, "\n", text]
    (folder / "LICENSES.txt").write_text("".join(parts))
    print(f"{len(components)} components; {len(gathered)} texts of licences, {len(bare)} crates carry none")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]))
