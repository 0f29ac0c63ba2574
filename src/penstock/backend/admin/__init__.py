"""Creates, alters, deletes, lists and describes queues."""
