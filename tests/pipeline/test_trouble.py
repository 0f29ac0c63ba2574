"""Errors of Spark as a sentence."""

from __future__ import annotations

import pytest

from penstock.pipeline.trouble import in_short


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
        ("", "Spark does not say why"),
    ],
)
def test_what_java_says_is_cut_to_what_it_is_about(error: str, sentence: str) -> None:
    assert in_short(error) == sentence
