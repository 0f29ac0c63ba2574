"""One partition: epochs, commits, progress of replicas. Pure decisions without a node around them."""
