"""`penstock serve`, `node`, `frontend`, `metadata`."""
