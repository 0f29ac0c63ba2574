"""The disk of the machine behind the interface that storage knows."""
