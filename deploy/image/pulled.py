"""What a registry sends of each image in an OCI archive: a line `ARCHITECTURE BYTES` each, the configuration and layers.

usage: pulled.py ARCHIVE
"""

import json
import sys
import tarfile

INDEX = "application/vnd.oci.image.index.v1+json"


def images(archive, listed):
    """The manifests that an index names, through indexes in it."""
    for entry in listed["manifests"]:
        content = blob(archive, entry["digest"])
        if entry["mediaType"] == INDEX:
            yield from images(archive, content)
        else:
            yield content


def blob(archive, digest):
    return json.load(archive.extractfile("blobs/" + digest.replace(":", "/")))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with tarfile.open(sys.argv[1]) as archive:
        for manifest in images(archive, json.load(archive.extractfile("index.json"))):
            architecture = blob(archive, manifest["config"]["digest"])["architecture"]
            print(architecture, sum(part["size"] for part in [manifest["config"], *manifest["layers"]]))
