"""The real binary, before one upstream, as the suites run through it."""

import contextlib
import json
import os
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
from programs import running  # noqa: E402

# Before a command: tests may kill the program that starts it, and it must not outlive that.
ENDS_WITH_US = ["setpriv", "--pdeathsig", "KILL"]


@contextlib.contextmanager
def gateway(folder: pathlib.Path, upstream: str, listen=("127.0.0.1:0",)):
    """The first address of the gateway. It is told nothing but to forward the paths that it does not know."""
    config = {
        "listen": list(listen),
        "admin": "127.0.0.1:0",
        "data_dir": str(folder / "data"),
        "passthrough": "on",
        "upstreams": [{"name": "suite", "url": upstream}],
    }
    file = folder / "taximeter.yaml"
    file.write_text(json.dumps(config))  # JSON is YAML
    binary = os.environ["TAXIMETER_BINARY"]
    with running("stderr", *ENDS_WITH_US, binary, "serve", "--config", str(file)) as lines:
        for line in lines:
            event = json.loads(line)
            if event.get("event") == "listening":
                break
        else:
            raise SystemExit("the gateway ended before it listened")
        # Read on, or the gateway blocks on a full pipe.
        log = threading.Thread(target=keep, args=(lines, folder / "taximeter.log"))
        log.start()
        yield f"http://{event['listen']}"
    log.join()


def keep(lines, file: pathlib.Path):
    with lines, file.open("w") as log:
        log.writelines(lines)
