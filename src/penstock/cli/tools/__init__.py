"""`penstock bench`, `simulate`, `check-config`, `clock`, `audit`."""
