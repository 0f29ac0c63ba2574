"""A Celery application, configured as Celery's documentation of SQS says."""

import os
import signal
import time
from pathlib import Path

from celery import Celery
from reporting import report

app = Celery("celery_app")
app.conf.broker_url = os.environ["BROKER_URL"]
app.conf.broker_transport_options = {
    "region": "us-east-1",
    "is_secure": False,
    "visibility_timeout": int(os.environ["VISIBILITY_TIMEOUT"]),
    "wait_time_seconds": 5,
    "polling_interval": 0.1,
    "queue_name_prefix": os.environ["QUEUE_PREFIX"],
}
app.conf.task_acks_late = True
app.conf.task_ignore_result = True


@app.task
def note(number):
    """Says that it ran."""
    report(task="note", number=number)


@app.task(bind=True, max_retries=5)
def flaky(self, key):
    """Fails twice, and asks to be run again in a second."""
    report(task="flaky", key=key, retries=self.request.retries, at=time.time())
    if self.request.retries < 2:
        raise self.retry(countdown=1)


@app.task(bind=True)
def later(self, eta):
    """Says how long after its time it ran."""
    report(task="later", id=self.request.id, late=time.time() - eta)


@app.task(bind=True, acks_late=True)
def stuck(self, mark):
    """Never ends the first time it is run; ends at once the second time."""
    first = not Path(mark).exists()
    Path(mark).touch()
    report(task="stuck", id=self.request.id, first=first, process=os.getpid())
    if first:
        signal.pause()
