"""The node: drives queues and storage. It is synchronous; the runtime or the simulation gives it time, frames and threads."""
