"""The keeper: one small process that owns one session. Standard library only; started from the zygote."""
