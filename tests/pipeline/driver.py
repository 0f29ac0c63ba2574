"""`penstock` with spans of few batches, so that a short run compacts often: what the tests with kills kill."""

from __future__ import annotations

import penstock.cli.main
from penstock.pipeline.warehouse import places


def main() -> None:
    places.SPAN_BATCHES = 3
    places.BLOCK_SPANS = 2
    penstock.cli.main.main()


if __name__ == "__main__":
    main()
