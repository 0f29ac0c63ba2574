"""Work of a node over time: checkpoints, captures, freeing memory, timers, idle queues."""
