"""A process as a member of its cluster: its lease, its election, its view of the layout, its shutdown."""
