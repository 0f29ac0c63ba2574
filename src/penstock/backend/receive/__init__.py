"""Messages out: receive, subscribe, settle, browse."""
