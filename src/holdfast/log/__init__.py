"""The output log: raw bytes in segments, addressed by absolute offset, with an index next to them (docs/adr/0003)."""
