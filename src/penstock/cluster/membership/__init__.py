"""A process as a member of its cluster: its lease, its campaigns, what it hears of the layout, how it leaves."""
