"""Tables of any format: how they are read, and how their columns become features."""
