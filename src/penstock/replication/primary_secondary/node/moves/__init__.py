"""Messages that move to a queue which another node may lead."""
