"""Exports into moto's S3: what is there is what a folder would have, in one piece and in parts."""

import contextlib
import os
import pathlib
import subprocess
import sys

import boto3

import stage
from programs import running

BUCKET = "usage"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
# Larger than one part of an upload.
LARGE_BYTES = 8 << 20


@contextlib.contextmanager
def moto():
    """The address of an S3 on loopback with one empty bucket."""
    server = pathlib.Path(sys.executable).parent / "moto_server"
    with running("stderr", server, "-H", "127.0.0.1", "-p", "0") as log:
        line = next(line for line in log if "http://127.0.0.1:" in line)
        address = "http://127.0.0.1:" + line.split("http://127.0.0.1:")[1].split()[0]
        s3 = boto3.client("s3", endpoint_url=address, aws_access_key_id="test", aws_secret_access_key="test",
                          region_name="us-east-1")
        s3.create_bucket(Bucket=BUCKET)
        yield address, s3


def objects(s3):
    """Every object, by its path."""
    listed = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return {entry["Key"]: s3.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read() for entry in listed}


def check(folder, ledger, expect):
    with moto() as (address, s3):
        environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true"}
        local = folder / "bucket"
        for form in ("focus", "parquet", "ndjson"):
            (local / form).mkdir(parents=True)
            for output in (local / form, f"s3://{BUCKET}/llm/{form}"):
                stage.taximeter("bill", *ledger, "--format", form, "-o", str(output), environment=environment)
        there = objects(s3)
        files = {f"llm/{path.relative_to(local)}": path.read_bytes() for path in local.rglob("*") if path.is_file()}
        expect(there.keys() == files.keys(), f"in the bucket {sorted(there)}, in the folder {sorted(files)}")
        for path in there.keys() & files.keys():
            expect(there[path] == files[path], f"{path} differs in the bucket")
        largest = max(map(len, there.values()))
        expect(largest > LARGE_BYTES, f"no file was sent in parts: {largest}")
        refused(ledger, s3, environment, expect)
    print(f"bucket: {len(there)} objects as in a folder, the largest of {largest} bytes in parts")


def refused(ledger, s3, environment, expect):
    """What cannot be written ends with 69, says why, and leaves nothing."""
    cases = [("s3://missing/llm", environment, "missing"),
             (f"s3://{BUCKET}/plain", {**environment, "AWS_ALLOW_HTTP": "false"}, "plain text")]
    for url, variables, word in cases:
        done = subprocess.run([stage.BINARY, "bill", *ledger, "--format", "focus", "-o", url], check=False,
                              capture_output=True, text=True, timeout=120, env={**os.environ, **variables})
        expect((done.returncode, word in done.stderr) == (69, True), f"{url}: {done.returncode} {done.stderr}")
    expect(not [path for path in objects(s3) if path.startswith("plain")], "something was sent in plain text")
