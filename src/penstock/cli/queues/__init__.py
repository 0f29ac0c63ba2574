"""`penstock queue …`, `penstock dlq …`, `penstock purge`."""
