"""Inbox items and approval rules, pure. Imports `model` alone."""
