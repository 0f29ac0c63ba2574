"""How metadata servers share their work: who they are, which keeps what, whom to ask. Decides and touches nothing."""
