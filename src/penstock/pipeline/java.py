"""Finds the Java for Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock.pipeline.errors import PipelineError

OLDEST_JAVA = 17
_INSTALLED = Path("/usr/lib/jvm")
_ANSWER_SECONDS = 60
_ADVICE = (
    f"Spark needs Java {OLDEST_JAVA} or newer. Install it (Debian and Ubuntu: apt install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17), or point JAVA_HOME at one that is there"
)


def find_java(environment: Mapping[str, str] | None = None, installed: Path = _INSTALLED) -> Path:
    """The home of a Java that is new enough: JAVA_HOME's, that of the PATH, or one that the system has installed.

    JAVA_HOME takes precedence: if its Java is not suitable, that is an error and no other is used.
    """
    server_facts = os.environ if environment is None else environment
    wanted = server_facts.get("JAVA_HOME")
    if wanted:
        return _checked(Path(wanted))
    refused = []
    for program in _candidates(server_facts.get("PATH", ""), installed):
        release = java_release(program)
        if release is not None and release >= OLDEST_JAVA:
            return program.resolve().parent.parent
        refused.append(f"{program} ({'does not run' if release is None else f'Java {release}'})")
    found = f"only {', '.join(refused)} was found" if refused else "no Java was found"
    raise PipelineError(f"{found}. {_ADVICE}")


def java_release(program: Path) -> int | None:
    """The release of a `java` program: 8, 11, 17, …; None where it does not run or says something else."""
    try:
        answer = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found.group(1)) if found else None


def _checked(home: Path) -> Path:
    program = home / "bin" / "java"
    release = java_release(program)
    if release is None:
        raise PipelineError(f"JAVA_HOME is {home}, but {program} is no Java that runs. {_ADVICE}")
    if release < OLDEST_JAVA:
        raise PipelineError(f"JAVA_HOME is {home}, which is Java {release}. {_ADVICE}")
    return home


def _candidates(path: str, installed: Path) -> Iterator[Path]:
    on_path = shutil.which("java", path=path)
    if on_path is not None:
        yield Path(on_path)
    if installed.is_dir():
        yield from sorted(installed.glob("*/bin/java"))
