"""The internal manager of a cluster: its election, when it checks the layout, and what it decides and writes."""
