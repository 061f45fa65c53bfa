"""The output log: raw bytes in segments, addressed by absolute offset, with an index beside them (docs/adr/0003)."""
