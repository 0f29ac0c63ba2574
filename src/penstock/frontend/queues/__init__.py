"""What the front end knows of queues: names, metadata, attributes, where they send dead letters."""
