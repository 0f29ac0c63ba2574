"""`penstock send`, `receive`, `peek`, `tail`, `request`, `group …`."""
