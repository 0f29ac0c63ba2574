"""What newer front ends put into the metadata of queues and move tasks goes with every change that this one makes."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.frontend.actions.create_queue import create_queue
from penstock.frontend.actions.queue_tags import tag_queue
from penstock.frontend.move_tasks import task
from penstock.frontend.move_tasks.task import MoveHistory, MoveTask
from penstock.frontend.queues import metadata as queue_metadata
from penstock.steps.step import Put
from tests.frontend.harness import FrontEnd


def test_a_change_of_tags_keeps_what_a_newer_version_put_there() -> None:
    front = FrontEnd()
    front.call(create_queue, "CreateQueue", QueueName="orders", tags={"a": "1"})
    key = queue_metadata.key_of(front.native("orders"))
    entry = front.world.entries[key]
    newer: dict[str, Any] = {**msgspec.json.decode(entry.value), "flavour": "sweet"}
    newer["attributes"]["taste"] = 7
    front.write(Put(key, msgspec.json.encode(newer), entry.version))
    front.call(tag_queue, "TagQueue", QueueUrl="orders", Tags={"b": "2"})
    metadata = queue_metadata.decode(front.world.entries[key].value)
    assert metadata.tags == {"a": "1", "b": "2"}
    assert (metadata.later, metadata.attributes.later) == ({"flavour": "sweet"}, {"taste": 7})


def test_the_progress_of_a_task_keeps_what_a_newer_version_put_there() -> None:
    one = MoveTask(task_id="t", source_arn="a", to_move=3, started_ms=1, until=9)
    fields = msgspec.json.decode(task.encode(MoveHistory(queue_id=1, tasks=(one,))))
    fields["flavour"] = fields["tasks"][0]["taste"] = "sweet"
    changed = task.decode(msgspec.json.encode(fields)).changed("t", moved=2)
    again = task.decode(task.encode(changed))
    assert (again.tasks[0].moved, again.later) == (2, {"flavour": "sweet"})
    assert again.tasks[0].later == {"taste": "sweet"}
