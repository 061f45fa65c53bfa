"""The package's version, in one place: the build reads it from here, and so does the program."""

VERSION = "0.1.0"
