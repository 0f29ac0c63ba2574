"""The state of a partition: columns of messages, leases, timers, deduplication, producers. Only records change it."""
