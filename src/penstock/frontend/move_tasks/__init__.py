"""Message move tasks: their stored state, and the decisions of the mover."""
