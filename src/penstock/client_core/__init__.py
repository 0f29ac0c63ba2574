"""What a client decides, as synchronous machines: time and dice are arguments, and nothing here touches a socket.

The asyncio client (`penstock.client`) runs these over TCP, and the simulation over its network.
"""
