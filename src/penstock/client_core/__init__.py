"""The decisions of a client, as synchronous state machines: time and random numbers are arguments, and nothing here uses a
socket.

The asyncio client (`penstock.client`) runs these over TCP, and the simulation over its network.
"""
