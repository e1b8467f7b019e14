"""What stands in for things that manifests have and a test has not, and values that nobody means."""

import atexit
import copy
import functools
import pathlib
import shutil
import subprocess
import tempfile


@functools.lru_cache
def certificate():
    """A folder with what a Secret of certificates has."""
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a",
                    "-keyout", folder / "tls.key", "-out", folder / "tls.crt"], capture_output=True, check=True)
    shutil.copy(folder / "tls.crt", folder / "ca.crt")
    return str(folder)


def leaves(values, place=()):
    """Each value that has no further names below it, and where it stands."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*place, name))
        else:
            yield (*place, name), value


def of_another_kind(given, values):
    """For each value of a chart its key, and `values` with something of another kind there."""
    for place, value in leaves(given):
        bad = copy.deepcopy(values)
        *outer, last = place
        inner = functools.reduce(lambda inner, name: inner.setdefault(name, {}), outer, bad)
        inner[last] = ["another kind"] if isinstance(value, str) else "another kind"
        yield "/".join(place), bad
