"""`penstock` with spans of few batches, so that a short run compacts often: what the tests with kills kill."""

from __future__ import annotations

from penstock.cli.main import main
from penstock.pipeline.warehouse import paths

if __name__ == "__main__":
    paths.SPAN_BATCHES = 3
    paths.BLOCK_SPANS = 2
    main()
