"""`penstock cluster …`."""
