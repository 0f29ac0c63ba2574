"""A process that writes to a SQLite store: `python sqlite_writer.py FILE count N` or `... FILE forever`."""

import asyncio
import sys
from pathlib import Path

from penstock.metadata.store.sqlite import open_sqlite_store
from tests.metadata.store_contract import increment


async def main(file: Path, what: str, times: int) -> None:
    store = await open_sqlite_store(file)
    if what == "count":
        await increment(store, times)
    else:
        for number in range(times):
            await store.put(f"key/{number}", b"%d" % number)
            print(number, flush=True)  # only after it was acknowledged
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
