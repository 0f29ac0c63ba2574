"""`docs/guide/cluster.md` does what it says: its commands and its Python, typed in order beside a cluster that runs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from penstock.runtime.cluster.tls import ClusterTls
from tests.client.guide_page import GuidePage, commands, matches
from tests.ports import base_port
from tests.process.local_cluster import ClusterUp
from tests.process.programs import environment

PAGE = GuidePage("cluster.md")
SECONDS = 300
MESSAGES = ("100_000", "50")
"""Nobody waits for as many in a test."""


def run(command: str, place: Path, url: str) -> str:
    """A command of the page, typed where `penstock cluster up` was."""
    variables = environment(PENSTOCK_URL=url, COLUMNS="120")
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env=variables,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def test_the_page_can_be_typed_from_top_to_bottom(tmp_path: Path) -> None:
    cluster = ClusterUp(tmp_path / "penstock-cluster", "--frontends", "1", "--base-port", base_port())
    typed = 0
    try:
        url, sqs = cluster.facts["url"], cluster.facts["sqs_url"].removeprefix("http://")
        for kind, line, text in PAGE.blocks("console|python"):
            if kind == "console":
                for command, expected in commands(text):
                    printed = run(command, tmp_path, url)
                    # Where the page shows nothing it leaves out what there is to see.
                    assert not expected or matches(expected, printed), (
                        f"{command}\n{printed}\nis not\n{expected}"
                    )
                    typed += 1
                continue
            code = text.replace("127.0.0.1:9324", sqs).replace(*MESSAGES)
            code = code.replace("penstock://127.0.0.1:9326", url)
            exec(compile(ast.increment_lineno(ast.parse(code), line), str(PAGE.path), "exec"), {})
            typed += 1
        cluster.interrupt()
    finally:
        cluster.kill()
    assert typed >= 9
    # What it made with openssl is what processes of a cluster take.
    ClusterTls(tmp_path / "node-1.pem", tmp_path / "node-1.key", tmp_path / "ca.pem")
    assert len((tmp_path / "cluster-secret").read_bytes()) > 32
