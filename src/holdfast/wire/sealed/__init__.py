"""The sealed channel between a device and a host, through a relay that can neither read nor change it.

Pure: bytes in, bytes and events out; no socket, clock or thread. Imports `model` and, for the primitives,
`cryptography`; only the link loads it. The protocol, byte by byte: docs/relay-protocol.md.

    channel.py        one channel, from the handshake to its end; what a link uses
    noise.py          Noise NK: handshake and cipher states
    prologue.py       the version and ids that both ends must agree on
    device_proof.py   the device's signature, first record of a channel
    records.py        sealed records: counters, rekeying, padding, lengths
    frames.py         what a record carries: the frames of numbered streams
    mux.py            streams with credit; interactive ones before bulk
    stream.py         the state of one stream
    events.py         what a channel reports
    errors.py         why a channel ends
"""
