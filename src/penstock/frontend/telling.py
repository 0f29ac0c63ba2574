"""Calls back one of several waiting requests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

logger = logging.getLogger(__name__)

Told = TypeVar("Told")


def tell(done: Callable[[Told], None], outcome: Told) -> None:
    """Calls back; a defect there must not affect the others that wait for the same answer."""
    try:
        done(outcome)
    except Exception:
        logger.exception("could not process an answer: this is a defect of Penstock; please report it")
