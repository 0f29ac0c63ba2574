"""Why a connection cannot go on."""

from __future__ import annotations


class Refusal(Exception):
    """The connection cannot go on: the status and the sentence that tell its client why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(status, sentence)
        self.status = status
        self.sentence = sentence
