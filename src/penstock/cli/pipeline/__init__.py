"""`penstock pipeline …`."""
