"""Bridges to other frameworks: each module imports its framework at the top, and nothing imports the modules."""
