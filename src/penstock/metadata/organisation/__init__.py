"""How metadata servers share their work: which servers exist, which keeps what, which is asked. Pure decisions."""
