"""The record of who did what: ledger, chain, spools, refusals."""
