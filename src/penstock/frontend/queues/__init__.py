"""The front end's knowledge of queues: names, metadata, attributes, dead-letter targets."""
