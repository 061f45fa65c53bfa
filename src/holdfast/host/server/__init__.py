"""The socket: listening, connections, who the peer is, step threads."""
