"""A producer with wrong clocks: sends one message for every line of its input, and says when it did so.

Run as `python -m tests.process.shifted_producer URL QUEUE NAME SHIFT_SECONDS DRIFT_PPM`. Its wall clock is off by the
shift, and its monotonic clock too, and runs wrong by the drift. What it reports as `made_ns` is the clock that all
processes of the computer share, which the client never sees.
"""

from __future__ import annotations

import json
import sys
import time

import penstock


def main() -> None:
    url, name, producer, shift, drift = sys.argv[1:]
    shift_us, drift_ppm = round(float(shift) * 1_000_000), int(drift)
    began_us = time.monotonic_ns() // 1000

    def elapsed_us() -> int:
        true_us = time.monotonic_ns() // 1000 - began_us
        return true_us + true_us * drift_ppm // 1_000_000

    wall_us = time.time_ns() // 1000 + shift_us
    wrong = penstock.LocalClock(lambda: wall_us + elapsed_us(), lambda: abs(shift_us) + elapsed_us())
    with penstock.connect_blocking(url, local_clock=wrong) as client:
        queue = client.queue(name)
        print(json.dumps({"offset_us": client.clock().offset_us}), flush=True)
        for number, _ in enumerate(sys.stdin):
            uncertainty_us = client.clock().uncertainty_us
            made_ns = time.monotonic_ns()
            body = f"{producer}-{number}"
            queue.send(body)
            report = {"body": body, "made_ns": made_ns, "took_ns": time.monotonic_ns() - made_ns}
            print(json.dumps(report | {"uncertainty_us": uncertainty_us}), flush=True)


if __name__ == "__main__":
    main()
