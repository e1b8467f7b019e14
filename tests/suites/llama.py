"""A pytest plugin for the tests of llama.cpp's server."""

import os
import socket
import sys

import results


def pytest_configure():
    """Before their conftest's session begins: it would download every model that any test wants."""
    sys.path.insert(0, os.getcwd())
    import utils

    utils.ServerPreset.load_all = staticmethod(lambda: None)
    start = utils.ServerProcess.start

    def noted(*arguments, **options):
        results.note_request()
        return start(*arguments, **options)

    utils.ServerProcess.start = noted
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        os.environ["PORT"] = str(listener.getsockname()[1])
