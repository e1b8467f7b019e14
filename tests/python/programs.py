"""Programs that a test starts beside itself. The scripts that run tests put this folder on Python's path."""

import contextlib
import subprocess

# Longest that one has to end.
SECONDS_MAX = 60


@contextlib.contextmanager
def running(pipe, *words):
    """A program, and what it says on `pipe`: stdout or stderr; ended by its own id."""
    child = subprocess.Popen(words, text=True, **{pipe: subprocess.PIPE})
    try:
        yield getattr(child, pipe)
    finally:
        child.terminate()
        child.wait(SECONDS_MAX)
