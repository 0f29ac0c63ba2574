"""An archive of Spark's classes for Java: written once, and used by every Java that is started here from then on.

A Java that starts Spark spends seconds on finding and checking 15,000 classes in some 300 archives, every time. It can
archive the classes that it has loaded (`-XX:SharedArchiveFile`), and notices by itself if the archive belongs to another
Java or another Spark. It does not notice an incomplete file, and crashes on it: so a file gets its name when it is
complete and on disk.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.pipeline.errors import PipelineError, in_short
from penstock.pipeline.warehouse import local_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

RECORDING = "-XX:+RecordDynamicDumpInfo -Xlog:disable"
"""For the Java that writes the archive, without a message about each class that it leaves out. It cannot use an archive
meanwhile.
"""
_USED = "-XX:SharedArchiveFile="
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""An archive that does not match is ignored, and Java's message about it would be in the output of a job."""
_NAME = "spark-classes"


def archive_options(java_home: Path, given: str = "") -> str:
    """Further options for a Java that starts with `given` ones: to use the archive, if there is one for it."""
    path = archive_path(java_home)
    if path is None or _USED in given or RECORDING in given:
        return ""
    return f"{quoted(f'{_USED}{path}')} {_QUIET}"


def archive_path(java_home: Path) -> Path | None:
    """The archive of this Spark for a Java, if it was written."""
    name = _file_name(java_home)
    return next((path for place in _places() if (path := place / name).is_file()), None)


def write_archive(session: SparkSession, java_home: Path) -> Path:
    """Everything that a session's Java, which was started with `RECORDING`, has loaded; it takes seconds.

    It takes the place of those of other versions. Raises `PipelineError` where it cannot be written.
    """
    place = next((place for place in _places() if _is_writable(place)), None)
    if place is None:
        raise PipelineError(
            f"none of {', '.join(map(str, _places()))} can be written. Name another directory with XDG_CACHE_HOME"
        )
    path = place / _file_name(java_home)
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        _silence(session)
        _tell_java(session, "vmCds", "dynamic_dump", str(beside))
        local_files.rename(str(beside), str(path))
    except Exception as error:
        raise PipelineError(f"Java could not write {path}: {in_short(str(error))}") from None
    finally:
        beside.unlink(missing_ok=True)
    for other in place.glob(f"{_NAME}-*.jsa"):
        if other != path:
            other.unlink(missing_ok=True)
    return path


def quoted(option: str) -> str:
    """A quoted option, for any directory name."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if " " in option or escaped != option else option


def _places(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """The possible directories: in the virtual environment that has this Spark, or in the user's cache."""
    cache = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    own = [Path(sys.prefix)] if sys.prefix != sys.base_prefix else []
    return [*own, Path(cache) / "penstock"]


def _file_name(java_home: Path) -> str:
    """A different name for each Java, Spark and installation: Java would refuse an archive of another one."""
    facts = []
    for part in (_spark_home() / "jars", java_home.resolve() / "lib" / "modules"):
        with suppress(OSError):
            found = part.stat()
            facts.append(f"{part} {found.st_size} {found.st_mtime_ns}")
    return f"{_NAME}-{hashlib.sha256('|'.join(facts).encode()).hexdigest()[:16]}.jsa"


def _spark_home() -> Path:
    import pyspark

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def _is_writable(place: Path) -> bool:
    with suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
    return place.is_dir() and os.access(place, os.W_OK)


def _silence(session: SparkSession) -> None:
    """Otherwise Java would print messages on standard output."""
    jvm: Any = session._jvm
    jvm.java.lang.System.setOut(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))


def _tell_java(session: SparkSession, command: str, *words: str) -> None:
    """Sends Java a command of `jcmd`, a program that not every Java contains."""
    jvm: Any = session._jvm
    gateway: Any = session.sparkContext._gateway

    def array(kind: Any, *values: Any) -> Any:
        made = gateway.new_array(kind, len(values))
        for place, value in enumerate(values):
            made[place] = value
        return made

    text, thing = jvm.java.lang.String, jvm.java.lang.Object
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    commands = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    # Its own class is not accessible, so the method is looked up in a public interface.
    methods = jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethods()
    (invoke,) = [method for method in methods if method.getName() == "invoke"]
    given, kinds = array(thing, array(text, *words)), array(text, "[Ljava.lang.String;")
    invoke.invoke(server, array(thing, commands, command, given, kinds))
