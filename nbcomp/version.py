"""The version of nbcomp, for what is kept on disk to say who made it."""

VERSION = "0.1.0"
