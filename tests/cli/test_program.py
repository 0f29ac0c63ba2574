"""The program as a whole: help, version, no server, exit codes, configuration, missing parts."""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import exits
from penstock.cli.main import app
from penstock.model.errors import ERRORS, ErrorCode
from tests.cli.conftest import Outcome, Penstock
from tests.ports import free_port

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def run(*arguments: str, stdin: str = "") -> Outcome:
    """The program as a process of its own."""
    result = subprocess.run(
        [sys.executable, "-m", "penstock.cli.main", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Outcome(result.returncode, result.stdout, result.stderr)


def test_help_imports_neither_the_client_nor_the_server() -> None:
    probe = (
        "import sys; import penstock.cli.main; "
        "print([name for name in ('asyncio', 'uvloop', 'penstock.client', 'penstock.runtime', 'rich.table')"
        " if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, timeout=300, check=True
    )
    assert result.stdout.strip() == "[]"


def test_help_and_version_work_without_a_server() -> None:
    assert "dead letters" in run("--help").output.lower()
    version = run("version", "--json")
    assert version.code == 0
    assert set(version.objects[0]) == {"version", "protocol", "python"}


def test_no_server_is_said_at_once() -> None:
    port = free_port()
    outcome = run("queue", "list", "--url", f"penstock://127.0.0.1:{port}")
    assert outcome.code == 5
    assert outcome.errors == (
        f"error: nothing listens at 127.0.0.1:{port}; is `penstock serve` running there? "
        "Name another server with --url or PENSTOCK_URL.\n"
    )


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "127.0.0.1:1", "penstock://", "penstock://h:1/path"])
def test_a_url_that_is_none_is_a_mistake(url: str) -> None:
    outcome = run("queue", "list", "--url", url)
    assert outcome.code == 2
    assert "is not the address of a server" in outcome.errors


def test_a_reader_that_has_had_enough_is_no_error_worth_a_traceback(
    penstock: Penstock, queue: str, server_url: str
) -> None:
    penstock("send", queue, "x" * 1000, "--count", "500")
    program = [
        sys.executable,
        "-m",
        "penstock.cli.main",
        "peek",
        queue,
        "--max",
        "500",
        "--url",
        server_url,
        "--body",
    ]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 1


def test_the_node_is_shown(penstock: Penstock) -> None:
    (node,) = penstock("node", "show", "--json").objects
    assert node["queues"] >= 0
    assert node["memory_bytes"] > 1_000_000
    assert node["data_directory"] in penstock("node", "show").output


def test_a_good_configuration_is_shown_and_a_bad_one_explained(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text("[storage]\ncache_size = '1GiB'\n")
    good = run("check-config", str(file))
    assert good.code == 0
    assert "storage.cache_size          1GiB" in good.output
    assert run("check-config", str(file), "--json").objects[0]["storage.cache_size"] == "1GiB"
    file.write_text("[storage]\ncashe_size = '1GiB'\ndurability = 'maybe'\n")
    bad = run("check-config", str(file))
    assert bad.code == 1
    assert bad.errors.splitlines() == [
        f"{file}:2: storage.cashe_size: unknown key; did you mean storage.cache_size?",
        f'{file}:3: storage.durability: "maybe" is not allowed; use one of "sync", "os"',
    ]
    problems = run("check-config", str(file), "--json").objects
    assert [(one["line"], one["field"]) for one in problems] == [
        (2, "storage.cashe_size"),
        (3, "storage.durability"),
    ]


def test_a_configuration_is_checked_for_the_role_that_it_is_for(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text("[frontend]\nbackend = 'queues.example:9326'\n[storage]\ndirectory = '/data'\n")
    found = run("check-config", str(file))
    assert found.output.startswith(f"{file} is good for penstock frontend")
    (values,) = run("check-config", str(file), "--json").objects
    assert values["frontend.backend"] == "queues.example:9326"
    assert "storage.cache_size" not in values
    (values,) = run("check-config", str(file), "--role", "serve", "--json").objects
    assert "frontend.backend" not in values
    assert values["storage.directory"] == "/data"
    assert run("check-config", str(file), "--role", "cook").code == exits.USAGE


def test_a_contradiction_of_one_role_is_none_of_another(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text("sqs.listen = '127.0.0.1:9326'\n")
    assert "where native.listen listens" in run("check-config", str(file)).errors
    assert run("check-config", str(file), "--role", "frontend").code == 0
    file.write_text("sqs.tls_key = 'key.pem'\n")
    assert "sqs.tls_certificate: is missing" in run("check-config", str(file), "--role", "frontend").errors


def test_a_configuration_is_checked_with_the_token_of_monitoring(tmp_path: Path) -> None:
    file, token = tmp_path / "penstock.toml", tmp_path / "token"
    file.write_text("[monitoring]\nlisten = '0.0.0.0:9325'\n")
    open_to_all = run("check-config", str(file), "--role", "serve")
    assert (open_to_all.code, "refuses to listen on 0.0.0.0:9325" in open_to_all.errors) == (1, True)
    file.write_text(f"[monitoring]\nlisten = '0.0.0.0:9325'\ntoken_file = '{token}'\n")
    assert "monitoring.token_file: cannot read" in run("check-config", str(file), "--role", "serve").errors
    token.write_text("0123456789abcdef\n")
    assert run("check-config", str(file), "--role", "serve").code == 0


def test_every_error_code_has_an_exit_code() -> None:
    for code in ErrorCode:
        assert exits.exit_code(code) in exits.MEANINGS
        if ERRORS[code].retryable and code is not ErrorCode.UNREACHABLE:
            assert exits.exit_code(code) == exits.REFUSED, code


def test_the_reference_names_every_command_and_exit_code() -> None:
    text = REFERENCE.read_text()
    names = [command.name for command in app.registered_commands]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        names += [f"{group.name} {command.name}" for command in group.typer_instance.registered_commands]
    for name in names:
        assert f"## `penstock {name}" in text, name
    for number, meaning in exits.MEANINGS.items():
        assert f"| {number} | {meaning} |" in text
