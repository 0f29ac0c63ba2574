"""`penstock bench`: the machine's own limits, and a real server under load beside them, in one run."""
