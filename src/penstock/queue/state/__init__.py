"""What a partition remembers: columns of messages, leases, timers, deduplication, producers. Records change it."""
