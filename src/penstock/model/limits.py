"""Every limit of the product, named once, units last."""

KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

QUEUE_NAME_CHARACTERS = 160
"""Long enough for an SQS name with account and region in front."""
GROUP_BYTES = 128
DEDUPLICATION_ID_BYTES = 128
ATTRIBUTES_PER_MESSAGE = 64
ATTRIBUTES_BYTES = 1088 * KIBIBYTE
"""SQS lets a whole message of 1 MiB be attributes; names of their types and our own come on top."""

MESSAGE_BYTES_DEFAULT = 1 * MEBIBYTE
MESSAGE_BYTES_MAX = 16 * MEBIBYTE
BATCH_MESSAGES = 10_000
BATCH_BYTES = 20 * MEBIBYTE

FRAME_BYTES = 24 * MEBIBYTE
FRAME_HEAD_BYTES = 4 * MEBIBYTE

RECEIVE_MESSAGES = 10_000
RECEIVE_BYTES = 16 * MEBIBYTE
RECEIVE_BYTES_DEFAULT = 4 * MEBIBYTE
RECEIVE_WAIT_MS = 1 * HOUR_MS
ATTEMPT_ID_BYTES = 128
ATTEMPT_MS = 5 * MINUTE_MS
"""For so long a receive asked again under its attempt id gives the same messages again."""
ATTEMPTS_PER_QUEUE = 100_000
RECEIVE_PARKED_MS = 1 * SECOND_MS
"""How long a receive that would not wait does so where its connection is not ready to take messages."""
UNREAD_BYTES = 8 * MEBIBYTE
"""A connection with this many unread bytes of messages gets no more until it has read them."""
WAITING_RECEIVERS_PER_QUEUE = 10_000
WAITING_PER_CONNECTION = 10_000
"""Receivers and subscriptions of one connection, those without credit included."""
PEEK_MESSAGES = 1_000
PEEK_SCAN_MESSAGES = 100_000
PEEK_BYTES = 4 * MEBIBYTE
MOVE_MESSAGES = 1_000
MOVE_BYTES = 8 * MEBIBYTE
RECEIPTS_PER_REQUEST = 10_000
RUNS_PER_RECORD = 1_000_000
"""A record has a bounded size (15 bytes a run), however scattered the messages are that it is about."""

PAGE_ROWS = 1_024
"""The tables beside the messages of a partition are kept, and put into snapshots, in pages of about so many rows."""
CAPTURE_PAGES = 8
"""A state that goes into a snapshot or to a replica is copied so many pages at a time, between requests."""

QUEUES_PER_NODE = 100_000
PRODUCERS_PER_QUEUE = 100_000
PRODUCER_BATCHES_REMEMBERED = 1_024
PRODUCER_BATCHES_PER_QUEUE = 128_000
"""For all producers of a partition together; above it, the producer with the most batches loses its oldest ones first."""
PRODUCER_DUPLICATES_BYTES = 512 * KIBIBYTE
"""For the duplicates that batches of producers left out; batches whose duplicates are not remembered are refused."""
PRODUCER_IDLE_MS = 1 * HOUR_MS
PRODUCER_IDLE_STEP_MS = 1 * MINUTE_MS
"""A pause between two batches of a partition counts as no more than this, because a clock may have been set forward."""
PRODUCER_CROWDED_IDLE_MS = 5 * MINUTE_MS
"""If a partition has its maximum of producers, those that were silent for so long are replaced by others."""

SLOWEST_CLOCK_PERCENT = 90
"""After the system's clock was set back, a node's clock runs at this pace until the system's has caught up."""

PRIORITIES = 10
PRIORITY_WEIGHTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Messages served per round from priority 0 to 9 while all of them wait: none is ever zero, so none starves."""

VISIBILITY_TIMEOUT_MS_DEFAULT = 30 * SECOND_MS
VISIBILITY_TIMEOUT_MS_MAX = 365 * DAY_MS
RETENTION_MS_DEFAULT = 4 * DAY_MS
RETENTION_MS_MIN = 1 * SECOND_MS
RETENTION_MS_MAX = 3650 * DAY_MS
DEDUPLICATION_WINDOW_MS_DEFAULT = 5 * MINUTE_MS
DEDUPLICATION_WINDOW_MS_MAX = 7 * DAY_MS
RECEIVE_COUNT_MAX = 100_000
QUEUE_MESSAGES_MAX = 10**12
QUEUE_BYTES_MAX = 2**60

WINDOW_MS_DEFAULT = 100
WINDOW_MS_MAX = 1 * HOUR_MS
MAX_UNCERTAINTY_MS_DEFAULT = 100
SENDS_HELD_PER_QUEUE = 10_000
"""Sends that wait for a clock to become certain."""
SENDS_HELD_BYTES_PER_QUEUE = 64 * MEBIBYTE
SENDS_HELD_BYTES_PER_NODE = 256 * MEBIBYTE
SEND_HELD_MS = 30 * SECOND_MS
"""A send that was held for so long is refused."""
TIMESTAMP_US_MAX = 2**56 - 1
"""The greatest time of a timestamp id."""
IDS_PER_REQUEST = 100_000
"""Timestamp ids that one request may take."""
IDLE_EXPIRY_MS_MIN = 1 * SECOND_MS

LOG_READ_MESSAGES = 100_000
LOG_READ_BYTES = 16 * MEBIBYTE
LOG_READ_BYTES_DEFAULT = 4 * MEBIBYTE
LOG_GROUPS_PER_QUEUE = 10_000
LOG_GROUP_NAME_CHARACTERS = 128
LOG_GROUP_MEMBERS = 1_000
LOG_MEMBER_LEASE_MS_MIN = 1 * SECOND_MS
LOG_MEMBER_LEASE_MS_MAX = 1 * HOUR_MS
LOG_READERS_WAITING_PER_QUEUE = 10_000

LIFECYCLE_ROWS_WAITING = 65_536
"""Rows of one partition that may wait to be reported; beyond it the oldest are dropped, and counted."""
LIFECYCLE_ROWS_PER_REPORT = 2_048
LIFECYCLE_REPORT_CHARACTERS = 65_536
"""Of texts in a report: groups, errors, names."""
LIFECYCLE_REPORT_MS = 100
"""Rows wait for company for so long."""
CONSUMER_NAME_CHARACTERS = 128
RELEASE_ERROR_CHARACTERS = 1_000

PARTITIONS_PER_QUEUE = 1_024
REPLICAS_PER_PARTITION = 7

QUEUES_PER_RECEIVE = 64
"""Queues that one receive may be served from."""
QUEUE_WEIGHT_MAX = 1_000
RECEIVE_SETS_REMEMBERED = 1_000
"""Sets of queues that are received from together and whose turns are kept from one receive to the next."""

TIMER_SLOT_MS = 10
"""Delays and times to live are kept in slots this wide: the stated epsilon of I7."""
RETENTION_SLOT_MS = 100
"""Retention is kept in slots this wide."""
