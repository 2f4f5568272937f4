"""Bridges to other frameworks: each module imports its framework; nothing imports the modules."""
