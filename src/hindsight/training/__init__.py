"""The story told once: episodes in, updates, policy out, evaluations beside."""
