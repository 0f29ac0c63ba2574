"""What a run can be told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import command
from benchmarks.machine import Bystanders, filesystem_of
from benchmarks.options import ALL_SECTIONS, SECTIONS, SQS_SECTIONS, BenchOptions, parse_counts
from benchmarks.process_tree import cpu_seconds, tree_cpu_seconds
from benchmarks.progress import Progress


def test_counts_may_be_short() -> None:
    assert parse_counts("1k,100K, 10m") == (1_000, 100_000, 10_000_000)
    assert parse_counts("100,1024") == (100, 1024)


@pytest.mark.parametrize("text", ["", "1k,", "ten", "-1", "k", "1.5k", "²"])
def test_other_counts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        parse_counts(text)


def test_sections_keep_their_order(tmp_path: Path) -> None:
    assert BenchOptions(data_directory=tmp_path).sections == SECTIONS
    chosen = BenchOptions(only=("fifo", "machine"), data_directory=tmp_path)
    assert chosen.sections == ("machine", "fifo")


def test_sqs_sections_are_asked_for(tmp_path: Path) -> None:
    assert BenchOptions(sqs=True, data_directory=tmp_path).sections == SQS_SECTIONS
    chosen = BenchOptions(only=("sqs-idle", "fifo"), data_directory=tmp_path)
    assert chosen.sections == ("fifo", "sqs-idle")


def test_backlogs_default_to_those_of_the_target(tmp_path: Path) -> None:
    assert BenchOptions(data_directory=tmp_path).backlog_sizes == (1_000, 100_000, 10_000_000)
    assert BenchOptions(data_directory=tmp_path, quick=True).backlog_sizes[-1] < 10_000_000
    assert BenchOptions(data_directory=tmp_path, backlogs=(5_000, 1_000)).backlog_sizes == (1_000, 5_000)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"only": ["speed"]}, "there is no section 'speed'"),
        ({"only": [], "size": "0"}, "a message size of 0 bytes"),
        ({"only": [], "backlogs": "10"}, "a backlog of 10 messages"),
        ({"only": [], "durability": "none"}, "durability is 'sync' or 'os'"),
        ({"only": [], "data": "/nowhere/at/all"}, "is not a directory"),
    ],
)
def test_bad_options_are_a_sentence(
    arguments: dict[str, object], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run(**arguments) == 2  # type: ignore[arg-type]  # as the caller names them
    assert sentence in capsys.readouterr().err.replace("\n", " ")


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /dev/shm rw,nosuid shared:4 - tmpfs tmpfs rw
41 22 254:16 / /data rw,relatime shared:9 - xfs /dev/vdb rw
"""


@pytest.mark.parametrize(
    ("directory", "filesystem"),
    [
        ("/somewhere/else", "ext4 on /dev/vda"),
        ("/data/queues", "xfs on /dev/vdb"),
        ("/data", "xfs on /dev/vdb"),
        ("/database", "ext4 on /dev/vda"),
    ],
)
def test_filesystem_is_that_of_the_nearest_mount(directory: str, filesystem: str) -> None:
    assert filesystem_of(Path(directory), MOUNTS) == filesystem


def test_our_own_work_is_nobody_elses() -> None:
    others = Bystanders()
    sum(range(2_000_000))
    assert 0 <= others.share() <= 1


def test_the_work_of_a_child_that_still_runs_is_ours() -> None:
    before = tree_cpu_seconds(os.getpid())
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; sum(range(20_000_000)); print('done', flush=True); sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        its = cpu_seconds(child.pid)
        assert its > 0.05
        assert tree_cpu_seconds(os.getpid()) - before > its - 0.01  # a tick: sums of fractions are not exact


def test_every_section_can_be_measured_and_has_its_share_of_the_progress() -> None:
    assert set(command._MEASURES) == set(ALL_SECTIONS)
    progress = Progress(Console(stderr=True), ALL_SECTIONS)
    for section in ALL_SECTIONS:
        progress.begin(section)
