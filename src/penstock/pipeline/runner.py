"""Runs a job: reads its log from the checkpoint on, batch by batch, rolls up now and then, and compacts at the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from threading import Event
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.pipeline.batches import BatchDone, Batches
from penstock.pipeline.errors import PipelineError, in_short, python_was_lost, reason_of
from penstock.pipeline.job_state import JobState
from penstock.pipeline.jobs.job import Job, ServerFacts
from penstock.pipeline.lost_tables import check_nothing_is_lost
from penstock.pipeline.progress import Progress
from penstock.pipeline.rolling import TOO_MANY_DIRECTORIES, Roller
from penstock.pipeline.server_facts import server_facts_of
from penstock.pipeline.shipping import check_cluster, is_cluster
from penstock.pipeline.warehouse import paths, swapping
from penstock.pipeline.warehouse.expiry import FOR_EVER, Keep
from penstock.pipeline.warehouse.files import Files
from penstock.pipeline.warehouse.generation import begin_generation
from penstock.pipeline.warehouse.lock import job_lock
from penstock.pipeline.warehouse.warehouse import Warehouse

logger = logging.getLogger("penstock.pipeline")

_LOOK_SECONDS = 0.2
_LAG_SECONDS = 1.0
"""How often Spark is asked how far behind it is: all of its progress comes along, as text."""
_STARTS = 10
"""How often in a row, without a batch in between, a run starts again because one of Spark's Python processes was lost."""
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_WITHOUT_PROGRAMS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""The other one starts a program of the system (`stat`, `chmod`) for every access to a file of the checkpoint."""


class Stop(Protocol):
    """Ends a run after the present batch; an `Event`, or a flag that a signal handler sets."""

    def wait(self, timeout: float, /) -> bool:
        """Waits so many seconds at most; True: the run is to end."""


@dataclass(frozen=True)
class RunOptions:
    """How a job is run."""

    endpoint: str = "127.0.0.1:9326"
    warehouse: str = "penstock-warehouse"
    checkpoint: str | None = None
    """None: inside the warehouse."""
    queue: str | None = None
    """None: the job's own log."""
    follow: bool = False
    interval_seconds: float = 5.0
    """With `follow`: how often a micro-batch begins."""
    roll_seconds: float = 60.0
    """With `follow`: how often tables are rolled up."""
    messages_per_batch: int = 2_000
    """Of the log; each holds up to some thousand rows."""
    rebuild: bool = False
    lossless: bool = True
    """False: continue where the log has removed rows that were not read yet."""
    keep: Keep = FOR_EVER
    """For how long rows are kept."""


Watch = Callable[[Progress], None]


def run_job(
    spark: SparkSession,
    job: Job,
    options: RunOptions,
    progress: Progress,
    *,
    stop: Stop | None = None,
    watch: Watch = lambda progress: None,
) -> None:
    """Until everything that is there now was read, or with `follow` until `stop` is set."""
    files = Files(spark, options.warehouse)
    checkpoint = Files(spark, options.checkpoint or files.uri(f"{paths.CHECKPOINTS}/{job.name}"))
    if is_cluster(spark.sparkContext.master or ""):
        check_cluster(spark, files)
    else:
        files.forgo_checksums()
    if checkpoint.local is not None and spark.conf.get(_FILE_MANAGER, None) is None:
        spark.conf.set(_FILE_MANAGER, _WITHOUT_PROGRAMS)
    with job_lock(files.local, job.name):
        if not options.rebuild:
            check_nothing_is_lost(files, checkpoint, job)
        generation = begin_generation(files, checkpoint, job.name, job.tables, rebuild=options.rebuild)
        for table in job.tables:
            swapping.recover(files, table.name)
        run = JobRun(Warehouse(spark, files, generation), job, options, progress, watch)
        run.run(checkpoint.root, stop or Event())


class JobRun:
    """One run of a job, in a warehouse in which the job does not run elsewhere."""

    def __init__(
        self, warehouse: Warehouse, job: Job, options: RunOptions, progress: Progress, watch: Watch
    ) -> None:
        self._warehouse = warehouse
        self._job = job
        self._options = options
        self._progress = progress
        self._watch = watch
        self._state = JobState(warehouse.files, job.name, warehouse.generation)
        self._batches = Batches(warehouse, job, self._state, self._batch_done)
        self._roller = Roller(warehouse, job, self._state)
        self._expired: date | None = None

    def _batch_done(self, done: BatchDone) -> None:
        """In Spark's thread: a caller that watches need not wait for a running roll-up."""
        self._progress.add_batch(done)
        self._watch(self._progress)

    def run(self, checkpoint: str, stop: Stop) -> None:
        """Reads, rolls up, compacts."""
        self._note_missing()
        self._read(checkpoint, stop)
        self._roll()
        self._expire(everything=True)
        self._roller.compact(everything=self._roller.small_directories() > TOO_MANY_DIRECTORIES)
        self._watch(self._progress)

    def _read(self, checkpoint: str, stop: Stop) -> None:
        """Starts again, from the checkpoint, if the only error is that one of Spark's Python processes was lost."""
        query, tries, batches = None, 0, self._progress.batches
        try:
            while True:
                try:
                    query = self._started(checkpoint)
                    self._wait(query, stop)
                    return
                except Exception as error:
                    if not python_was_lost(error):
                        raise
                    tries = tries + 1 if self._progress.batches == batches else 1
                    batches = self._progress.batches
                    if tries >= _STARTS:
                        raise _given_up(error, tries) from None
                    why = in_short(str(error))
                    logger.warning(
                        "a Python process of Spark was late or lost (%(reason)s): starting again",
                        {"reason": why},
                    )
                if query is not None:
                    query.stop()  # it has ended, but Spark may know it by its name for a moment yet
        finally:
            self._end(query)

    def _end(self, query: StreamingQuery | None) -> None:
        self._batches.stop()
        if query is not None:
            query.stop()

    def _started(self, checkpoint: str) -> StreamingQuery:
        options = self._options
        reader = self._warehouse.spark.readStream.format("penstock").options(
            endpoint=options.endpoint,
            queue=options.queue or self._job.queue,
            rows=self._job.rows.name,
            group=self._job.group,
            maxMessagesPerTrigger=str(options.messages_per_batch),
            failOnDataLoss=str(options.lossless).lower(),
        )
        writer = (
            reader.load()
            .writeStream.foreachBatch(self._batches)
            .queryName(f"penstock {self._job.name} in {self._warehouse.files.root}")
            .option("checkpointLocation", checkpoint)
        )
        if options.follow:
            writer = writer.trigger(processingTime=f"{round(1000 * options.interval_seconds)} milliseconds")
        else:
            writer = writer.trigger(availableNow=True)
        try:
            return writer.start()
        except Exception as error:
            raise _explained(error) from None

    def _wait(self, query: StreamingQuery, stop: Stop) -> None:
        """Polls, because Spark's own waiting would not notice `stop`."""
        rolled = asked = time.monotonic()
        while query.isActive and not stop.wait(_LOOK_SECONDS):
            if time.monotonic() - asked >= _LAG_SECONDS:
                last = query.lastProgress
                if last is not None and last["sources"]:
                    self._progress.note_offsets(_source(last["sources"][0]))
                asked = time.monotonic()
            self._watch(self._progress)
            if self._options.follow and time.monotonic() - rolled >= self._options.roll_seconds:
                self._roll()
                self._expire()
                self._roller.compact()
                rolled = time.monotonic()
        failure = query.exception()
        if failure is not None:
            raise _explained(failure) from None

    def _expire(self, *, everything: bool = False) -> None:
        """Once a day, and when the run ends: rows go by whole days. `everything`: no batch is added any more."""
        keep, now = self._options.keep, datetime.now(UTC)
        if keep != FOR_EVER and (everything or self._expired != now.date()):
            self._roller.expire(keep, now, everything=everything and self._warehouse.files.local is not None)
            self._expired = now.date()

    def _roll(self) -> None:
        rolled = False
        # Twice if a crash interrupted the last one: rows since then are in none yet.
        while self._roller.behind():
            around = server_facts_of(self._options.endpoint) if self._job.wants_queues else ServerFacts()
            if self._roller.roll(around) is None:
                break
            self._progress.roll_ups += 1
            rolled = True
        if self._job.renew is not None and not rolled:
            self._roller.renew(server_facts_of(self._options.endpoint))
        self._note_missing()

    def _note_missing(self) -> None:
        """For all runs: rows that an earlier run found missing are still missing."""
        self._progress.missing = sum(gap.missing for gap in self._roller.gaps())


def _source(told: Any) -> dict[str, Any]:
    return {"endOffset": told["endOffset"], "latestOffset": told["latestOffset"]}


def _given_up(error: Exception, tries: int) -> PipelineError:
    return PipelineError(
        f"{tries} times in a row a Python process of Spark did not start in time, or ended at once: the machine is too "
        "busy (Spark waits only ten seconds for some of them), or short of memory. Nothing is lost: run the same command "
        f"again. Spark says: {in_short(str(error))}"
    )


def _explained(error: Exception) -> Exception:
    reason = reason_of(error)
    return error if reason is None else PipelineError(reason)
