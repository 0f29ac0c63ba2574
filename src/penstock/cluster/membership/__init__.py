"""A process as a member of its cluster: its lease, its office, what it hears of the layout, how it leaves."""
