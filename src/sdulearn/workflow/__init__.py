"""From a table and answers to a model of that table."""
