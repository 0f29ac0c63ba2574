"""The architecture as two tables: who may import whom, and who may touch which part of the world.

Thinking packages decide and never touch the world; doing packages touch the world and decide nothing.
A package that stands in neither table may not exist: add a row here first, and say why in `docs/adr/`.
"""

# --- who may import whom ------------------------------------------------------------------------------------
# "penstock" is `penstock/__init__.py`, "config" may be a module or a package. Every package may import itself. A folder inside
# a package may have a row too (`a.b`); then it counts as a package beside the rest of that package.

MAY_IMPORT: dict[str, set[str]] = {
    # thinking
    "model": set(),
    "ordering": {"model"},
    "queue": {"model", "ordering", "replication", "columnar"},
    "wire": {"model"},
    "metrics": {"model", "wire"},
    "replication": {"model"},
    # what a node asks of a replication model
    "replication.interface": {"model", "storage", "wire"},
    # what the process of a cluster's node tells a model, and takes from it
    "replication.cluster_interface": {"model", "wire", "cluster"},
    "cluster": {"model"},
    "steps": {"model", "wire"},
    "routing": {"model", "wire", "cluster", "steps"},
    "sqs": {"model"},
    "columnar": {"model"},
    "client_core": {"model", "wire"},  # what a client decides: run by the client and by the simulation
    # synchronous, over interfaces: run by the runtime and by the simulation alike
    "storage": {"model"},
    "backend": {"model", "ordering", "queue", "wire", "storage", "columnar", "replication.interface"},
    # a replication model on a node: what the node is for a partition that has replicas
    "replication.primary_secondary.node": {
        *("model", "ordering", "queue", "wire", "storage", "columnar"),
        *("replication", "replication.interface", "replication.cluster_interface", "cluster", "backend"),
    },
    # doing
    "config": {"model"},
    "streams": {
        "model",
        "wire",
    },  # connections of frames over an event loop, for clients, metadata and servers
    # elections are campaigns (`cluster/membership`) over a store, and a mirror asks the store in the same words
    "metadata": {"model", "wire", "cluster", "streams"},
    "usage": {"model", "columnar"},
    # the data pipeline: a client like any other, that the queue itself knows nothing of; it shows its own figures the way
    # servers do, and names messages by the ids that front ends give them
    "pipeline": {"model", "wire", "columnar", "client", "penstock", "metrics", "frontend"},
    # synchronous: what it needs of the world it asks for in steps that the runtime carries out
    "frontend": {"model", "ordering", "wire", "sqs", "metadata", "usage", "steps"},
    "client": {"model", "ordering", "wire", "client_core", "streams"},
    "runtime": {
        *("model", "queue", "ordering", "wire", "sqs", "storage", "backend"),
        *("config", "metadata", "usage", "frontend", "metrics", "penstock"),
        *("cluster", "routing", "columnar", "steps", "streams", "replication.cluster_interface"),
    },
    "simulation": {
        *("model", "queue", "ordering", "wire", "storage", "backend"),
        *(
            "cluster",
            "replication",
            "replication.interface",
            "replication.cluster_interface",
            "replication.primary_secondary.node",
            "routing",
            "steps",
        ),  # whole clusters, with the manager's decisions
        "client_core",  # producers and consumers decide as those of the client library do
        "columnar",  # what the log of lifecycles says is read, and compared with the records
        "metadata",  # the cache of a store and how it follows the store; the store itself is simulated
        *("frontend", "sqs", "usage"),  # front ends that record usage, from the request to the log
    },
    # on top
    "penstock": {"model", "client"},
}
MAY_IMPORT["cli"] = set(MAY_IMPORT)

# Single modules that may import more than their package may.
MODULE_MAY_ALSO_IMPORT: dict[str, set[str]] = {
    # which replication model a node has is decided where the node is made, and nowhere else
    "penstock.runtime.processes.node": {"replication.primary_secondary.node"},
}

# --- who may touch what -------------------------------------------------------------------------------------
# Module names, and the builtins that do the same work. What stands in none of these groups is free for all.

WORLD: dict[str, set[str]] = {
    "event loop": {"asyncio", "uvloop", "async"},
    "threads": {"threading", "_thread", "queue", "signal"},
    "processes": {"multiprocessing", "concurrent", "subprocess"},
    "clock": {"time", "sched", "datetime.now"},
    "dice": {"random", "secrets", "uuid"},
    "system": {"os", "posix", "fcntl", "mmap", "ctypes", "resource"},
    "disk": {"pathlib", "shutil", "tempfile", "glob", "sqlite3", "open"},
    "network": {"socket", "ssl", "select", "selectors", "http", "urllib.request", "socketserver"},
    "log": {"logging"},
    "terminal": {"typer", "click", "rich", "print", "input"},
    "imports by name": {"importlib", "runpy", "__import__"},
}

NOTHING: set[str] = set()
EVERYTHING = set(WORLD)

MAY_TOUCH: dict[str, set[str]] = {
    "model": NOTHING,
    "queue": NOTHING,
    "ordering": NOTHING,
    "wire": NOTHING,
    "metrics": NOTHING,
    "replication": NOTHING,
    "replication.interface": NOTHING,
    "replication.cluster_interface": NOTHING,
    "cluster": NOTHING,
    "steps": NOTHING,
    "routing": NOTHING,
    "sqs": NOTHING,
    "columnar": NOTHING,
    "client_core": NOTHING,
    "storage": {"log"},
    "backend": {"log"},
    "replication.primary_secondary.node": {"log"},
    "config": {"system", "disk"},
    "streams": {"event loop"},
    "metadata": {"event loop", "threads", "system", "disk", "clock", "log"},
    "usage": {"log"},
    "frontend": {"log"},
    "client": EVERYTHING - {"terminal"},
    "runtime": EVERYTHING - {"terminal"},
    "pipeline": EVERYTHING - {"terminal"},
    "simulation": NOTHING,
    "penstock": NOTHING,
    "cli": EVERYTHING,
}

# Randomness as an argument: `random.Random` with a seed, and nothing else of `random`.
MAY_USE_SEEDED_DICE = {"model", "queue", "ordering", "wire", "client_core", "simulation"}

# Single modules that may touch more than their package may.
MODULE_MAY_ALSO_TOUCH: dict[str, set[str]] = {
    "penstock.simulation.campaign": {"processes", "system"},  # spreads seeds over the cores
    "penstock.simulation.sizes.small_sizes": {"imports by name"},  # its table names modules
    "penstock.metadata.server.server": {"network"},  # listens on the socket it is given
    "penstock.metadata.store.etcd_client": {"network"},  # makes the TLS context
    "penstock.metadata.store.etcd_http": {"network"},  # speaks to etcd
}

# --- who decides by the layout ------------------------------------------------------------------------------
# Which node is the primary of a partition, under which epoch, and which replicas are in sync: others ask `cluster/layout/serving.py`
# or the interface of the replication model.

FACTS = {"primary", "primary_started_ms", "in_sync", "in_sync_before", "serving", "hand_over_to"}
FACTS_WHERE_THE_LAYOUT_IS_READ = {"epoch"}  # elsewhere an epoch may be another thing's
MAY_READ_FACTS = (
    *("penstock.replication.primary_secondary", "penstock.cluster.layout", "penstock.cluster.manager"),
    *("penstock.cli", "penstock.metrics"),  # they show them
    "penstock.simulation",  # it checks them
)

# The keys of the layout's entries: only the decoder takes them apart.
LAYOUT_PREFIXES = {"NODES", "QUEUES", "PARTITIONS", "DRAINS", "POSITIONS", "UNCLEAN", "CAPACITY"}
MAY_CUT_LAYOUT_KEYS = ("penstock.cluster.layout.decoder", "penstock.simulation")

# What one part decides for another is an effect that is taken, and no callback that others put into an attribute.
NO_ASSIGNED_CALLBACKS = {"backend", "cluster", "replication", "replication.primary_secondary.node"}

# --- what doing packages decide -----------------------------------------------------------------------------
# They decide nothing. How often something is tried, and what is left alone for how long, belongs to a thinking package or to a
# machine, which says it with a constant of its own (`wire/backoff.py` has the pauses of connections). So modules of doing packages
# have no constants with these words in their names, and make no `Backoff` of numbers of their own.

DOING = {"runtime", "streams", "metadata", "client", "pipeline", "cli"}
DECIDING_WORDS = {
    "AGAIN",
    "ATTEMPTS",
    "BACKOFF",
    "GROWTH",
    "MARGIN",
    "PAUSE",
    "PAUSES",
    "RETRIES",
    "RETRY",
    "SUSPECT",
    "TRIES",
}
DECIDING_CALLS = {"penstock.wire.backoff.Backoff"}

# Machines in doing packages: synchronous, without an event loop, and run by the simulation or by tests as they are.
MACHINES_AMONG_DOING = {
    "penstock.metadata.mirror.mirroring",  # how the copy of a store follows it
    "penstock.metadata.organisation.server_search",  # which metadata server is asked next
    "penstock.metadata.store.etcd_search",  # which member of an etcd is asked next
    "penstock.metadata.users.register",  # which records of users count, and how often a write of it is tried
}

# --- size and names -----------------------------------------------------------------------------------------

LINES_AT_MOST = 400

# File names that say nothing about what lives there.
EMPTY_NAMES = {"base", "common", "helper", "helpers", "misc", "util", "utils"}
