"""A driver that shows everything Spark can show: its pages, its event log and a talkative log. Run as a program by a test.

It is told by standard input where to read, and the key and secret of its options; those of its environment are in its
environment. What the pages say it writes to files.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path

from penstock.pipeline.session import spark_session
from tests.pipeline.quick_spark import SESSION_OPTIONS

MARK = "what-is-meant-to-be-seen"
"""A setting that is no secret: where it is not seen, nothing is proven."""
PAGES = {
    "environment.json": "api/v1/applications/{id}/environment",
    "sql.json": "api/v1/applications/{id}/sql?details=true&planDescription=true&length=1000",
    "jobs.json": "api/v1/applications/{id}/jobs",
    "stages.json": "api/v1/applications/{id}/stages?details=true",
    "environment.html": "environment/",
    "sql.html": "SQL/",
    "plan.html": "SQL/execution/?id=0",
    "streaming.html": "StreamingQuery/",
}


def main(directory: Path) -> None:
    told = json.load(sys.stdin)
    options = SESSION_OPTIONS | {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (directory / "events").as_uri(),
        "spark.penstock.mark": MARK,
    }
    (directory / "events").mkdir()
    spark = spark_session("exposed", "local[1]", options)
    spark.sparkContext.setLogLevel("INFO")
    place = {"endpoint": told["endpoint"], "queue": told["queue"]}
    for who in ({"accessKey": told["key"], "secretKey": told["secret"]}, {}):
        frame = spark.read.format("penstock").options(**place, **who).load()
        print(frame.count())
        frame.explain(True)
        rows = spark.createDataFrame([("more",)], "body string")
        rows.write.format("penstock").options(**place, **who).mode("append").save()
        stream = spark.readStream.format("penstock").options(**place, **who).load()
        written = stream.writeStream.format("noop").trigger(availableNow=True)
        checkpoint = directory / f"checkpoint-{len(who)}"
        query = written.option("checkpointLocation", str(checkpoint)).start()
        query.awaitTermination()
        print(query.lastProgress)
        try:
            spark.read.format("penstock").options(**place | {"queue": "nowhere"}, **who).load().collect()
        except Exception as error:
            print(error)
    address, application = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
    assert address is not None
    port = address.rpartition(":")[2]
    for name, path in PAGES.items():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path.format(id=application)}") as answer:
            (directory / name).write_bytes(answer.read())
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
