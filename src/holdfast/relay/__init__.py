"""The relay node, where the lines of hosts and devices meet: so far its decisions, pure, with the clock as an argument.

Imports `model` alone, and never `wire.sealed`: a relay forwards what it cannot open.

    lines.py      who is connected: routing table and presence
    channels.py   which device's line is joined with which host's
    quotas.py     how much a device or an address may use
"""
