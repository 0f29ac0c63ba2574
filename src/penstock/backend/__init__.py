"""The node: drives queues and storage. Synchronous; the runtime or the simulation gives it time, frames and threads."""
