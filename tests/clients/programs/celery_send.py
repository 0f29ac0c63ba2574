"""Sends Celery tasks: `celery_send.py note 500`, `flaky KEY`, `later SECONDS`, `stuck FILE`."""

import json
import sys
import time

from celery_app import app, flaky, later, note, stuck

kind, argument = sys.argv[1:]
if kind == "note":
    sent = [note.delay(number).id for number in range(int(argument))]
elif kind == "flaky":
    sent = [flaky.delay(argument).id]
elif kind == "later":
    eta = time.time() + float(argument)
    sent = [later.apply_async((eta,), countdown=float(argument)).id]
else:
    sent = [stuck.delay(argument).id]
app.close()
print(json.dumps(sent))
