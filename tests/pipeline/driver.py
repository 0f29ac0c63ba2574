"""`penstock` with spans of few batches, so that a short run compacts often: what the tests with kills kill."""

from __future__ import annotations

from penstock.cli.main import main
from penstock.pipeline.warehouse import places

if __name__ == "__main__":
    places.SPAN_BATCHES = 3
    places.BLOCK_SPANS = 2
    main()
