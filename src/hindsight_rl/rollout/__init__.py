"""Collect episodes with a policy: in this process, in worker processes or on Ray."""
