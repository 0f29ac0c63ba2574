"""Everything about queues and users besides messages: a versioned store, a cache of it, users and keys."""
