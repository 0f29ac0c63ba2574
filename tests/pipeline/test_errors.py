"""Errors of Spark as a sentence."""

from __future__ import annotations

import pytest

from penstock.pipeline.errors import PipelineError, in_short, python_was_lost


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("[QUEUE] there is none.\nJVM stacktrace:\n\tat a.b(C.java)", "[QUEUE] there is none."),
        (
            "An error occurred while calling o90.load.\n: java.io.IOException: disk full\n\tat a.b(C.java)\n",
            "java.io.IOException: disk full",
        ),
        (
            (
                "An error occurred while calling o1.load.\n: a.SparkException: no worker\n\tat a.b(C.java)\n"
                "Caused by: a.Outer\n\tat d.e(F.java)\nCaused by: java.net.SocketTimeoutException: 10 s\n\t... 3 more"
            ),
            "a.SparkException: no worker (java.net.SocketTimeoutException: 10 s)",
        ),
        (
            (
                "An error occurred while calling o90.load.\n: org.apache.spark.SparkException: \nError from python worker:\n"
                "  Traceback:\n  FileNotFoundError: no such directory\nPYTHONPATH was:\n  /a:/b\njava.io.EOFException"
            ),
            "a Python process that Spark started has ended: FileNotFoundError: no such directory",
        ),
        ("", "Spark does not say why"),
    ],
)
def test_what_java_says_is_cut_to_what_it_is_about(error: str, sentence: str) -> None:
    assert in_short(error) == sentence


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        # Of a streaming source, of a source that is named, and of one whose process was killed.
        (Exception("[STREAM_FAILED] terminated with exception: Python worker failed to connect back."), True),
        (
            Exception(
                "An error occurred while calling o90.load.\n: java.net.SocketTimeoutException: Timed out while waiting for "
                "the Python worker to connect back after 60000 ms\n\tat a.b(C.scala)"
            ),
            True,
        ),
        (Exception("a.SparkException: Python worker exited unexpectedly (crashed). Consider setting"), True),
        (Exception('java.io.IOException: Cannot run program "python4": error=2, No such file'), False),
        (PipelineError("no server answers; have it connect back"), False),
    ],
)
def test_a_python_process_that_was_lost_is_told_from_other_trouble(error: Exception, lost: bool) -> None:
    assert python_was_lost(error) is lost
