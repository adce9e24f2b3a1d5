"""Run moto's S3 server, in the environment of `make test-cold`.

Prints its URL, and serves until its standard input ends. It keeps objects in memory, and has the
bucket `cold`.
"""

from __future__ import annotations

import logging
import sys


def main() -> None:
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").disabled = True
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "S3RVER", "aws_secret_access_key": "S3RVER", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=url, **keys).create_bucket(Bucket="cold")
    print(url, flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
