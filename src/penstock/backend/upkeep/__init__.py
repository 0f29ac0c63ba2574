"""What a node does over time: checkpoints, captures, freeing memory, timers, idle queues."""
