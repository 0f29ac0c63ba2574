"""The node itself: frames and time in, flushes, jobs and answers out."""
