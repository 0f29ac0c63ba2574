"""The pipeline is the list of its steps, and the table of actions says what each action needs."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from penstock.frontend import pipeline
from penstock.frontend.actions.table import ACTIONS
from penstock.frontend.targets import its_queue
from penstock.sqs import actions
from penstock.wire.messages import DescribeQueue
from tests.frontend.pipeline import Pipeline
from tests.frontend.test_authorize import DENIED, policy, statement

STEPS = [
    *("authenticate", "validate", "resolve", "authorize", "throttle"),
    *("deduplication_scope", "dispatch", "record_usage"),
]


def _called(tree: ast.AST) -> list[str]:
    """The names of the functions that are called, in the order in which they stand there."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            found.append((node.lineno, node.col_offset, name.lstrip("_")))
    return [name for _, _, name in sorted(found)]


def test_the_list_has_every_step_once_and_in_order() -> None:
    tree = ast.parse(inspect.getsource(pipeline))
    (steps,) = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "_steps"
    )
    assert [name for name in _called(steps) if name in STEPS] == STEPS


def test_policies_are_asked_in_one_place() -> None:
    tree = ast.parse(inspect.getsource(pipeline))
    (method,) = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "_authorize"
    )
    assert [name for name in _called(method) if name == "authorize"] == ["authorize"]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert sum(isinstance(call.func, ast.Name) and call.func.id == "authorize" for call in calls) == 1


def test_every_action_has_a_row_and_those_on_a_queue_need_that_queue() -> None:
    assert set(ACTIONS) == set(actions.ACTIONS)
    assert {name for name, row in ACTIONS.items() if row.targets is its_queue} == {
        name for name, action in actions.ACTIONS.items() if action.on_queue
    }
    assert [name for name, row in ACTIONS.items() if row.may_wait] == ["ReceiveMessage"]


@pytest.mark.parametrize("known", [False, True])
def test_a_name_that_would_lead_to_the_queue_of_another_account_leads_nowhere(
    tmp_path: Path, known: bool
) -> None:
    server = Pipeline(tmp_path)
    stranger = server.add_user("stranger", root=True, account="111111111111")
    server.must("CreateQueue", stranger, QueueName="secret")
    user = server.add_user("user", policy(statement("Allow", "sqs:*", Resource="*")))
    if known:
        server.must("GetQueueUrl", stranger, QueueName="secret")
    for name in ("111111111111.us-east-1.secret", "111111111111.us-east-1.missing"):
        assert server.call("GetQueueUrl", user, QueueName=name).error == "QueueDoesNotExist"


def test_the_queues_of_a_move_task_are_looked_up_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Pipeline(tmp_path)
    root = server.add_user("root", root=True)
    server.must("CreateQueue", root, QueueName="dead")
    server.must("CreateQueue", root, QueueName="back")
    arns = [f"arn:aws:sqs:us-east-1:000000000000:{name}" for name in ("dead", "back")]
    user = server.add_user("user", policy(statement("Deny", "sqs:SendMessage", Resource=arns[1])))
    looked_up: list[str] = []
    ask = server.ask

    def noted(request: object, *rest: object) -> int:
        if isinstance(request, DescribeQueue):
            looked_up.append(request.name)
        return ask(request, *rest)  # type: ignore[arg-type]  # handed on as it comes

    monkeypatch.setattr(server, "ask", noted)
    denied = server.call("StartMessageMoveTask", user, SourceArn=arns[0], DestinationArn=arns[1])
    assert denied.error == DENIED
    assert looked_up == ["dead", "back"]
