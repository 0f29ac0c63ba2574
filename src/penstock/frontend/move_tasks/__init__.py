"""Message move tasks: what is kept of them, and the thinking of who carries them out."""
