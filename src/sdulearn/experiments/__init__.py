"""The experiments of the paper, and new ones, end to end."""
