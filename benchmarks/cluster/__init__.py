"""`penstock bench --cluster`: three nodes on one machine, every message on three disks before it is acknowledged."""
