"""What is known of queues and users beside their messages: a versioned store, a cache of it, users and keys."""
