"""`penstock user …` and `penstock limit …`."""
