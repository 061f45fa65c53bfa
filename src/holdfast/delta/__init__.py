"""The change between two states, as bytes; pure. Imports `model` alone."""
