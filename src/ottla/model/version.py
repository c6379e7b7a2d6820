"""The version of this Ottla."""

VERSION = "0.1.0"
