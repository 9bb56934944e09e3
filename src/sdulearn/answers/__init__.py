"""What a set of answers says, and what is wrong with it."""
