"""What simulated clients do: send, receive, settle, subscribe, administer, and in the end take stock."""
