"""The process from which Spark forks its Python workers, with all their imports done.

Spark starts a new one for every access to a source: when it is named, when it is planned, when it is written to. Each
would import the same packages again, which takes 0.4 s of processor time. `worker-python` runs this file in place of
`pyspark.daemon`.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from contextlib import suppress

from pyspark.daemon import manager


def main() -> None:
    """Never returns: Spark ends it."""
    sys.path[0] = ""  # as with `python -m`
    # Threads do not outlive a fork. This is the one that numpy would begin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with suppress(ImportError):  # a worker that needs a missing package reports it
        importlib.import_module("penstock.pipeline.source.data_source")
        importlib.import_module(sys.argv[1])
    gc.freeze()  # what is there now stays shared with the workers
    manager()


if __name__ == "__main__":
    main()
