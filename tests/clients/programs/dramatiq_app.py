"""A dramatiq application on SQS; run with an argument it sends that many messages."""

import json
import os
import sys

import dramatiq
from dramatiq.middleware import AgeLimit, Callbacks, Retries, ShutdownNotifications, TimeLimit
from dramatiq_sqs import SQSBroker
from reporting import report

broker = SQSBroker(
    namespace=os.environ["QUEUE_PREFIX"],
    endpoint_url=os.environ["PENSTOCK_SQS_ENDPOINT"],
    dead_letter=True,
    visibility_timeout=60,
    tags={"made-by": "dramatiq"},
    middleware=[
        AgeLimit(),
        TimeLimit(),
        ShutdownNotifications(),
        Callbacks(),
        Retries(min_backoff=500, max_backoff=1000, max_retries=3),
    ],
)
dramatiq.set_broker(broker)


@dramatiq.actor
def count(number):
    """Says that it ran."""
    report(actor="count", number=number)


@dramatiq.actor
def stumble(mark):
    """Fails the first time."""
    first = not os.path.exists(mark)
    open(mark, "w").close()
    report(actor="stumble", first=first)
    if first:
        raise RuntimeError("the first time always fails")


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        count.send(number)
    stumble.send(sys.argv[2])
    count.send_with_options(args=(1000,), delay=1500)
    print(json.dumps(sorted(broker.queues)))
