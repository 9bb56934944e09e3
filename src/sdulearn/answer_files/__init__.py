"""Files of answers: plain tables, logs, and what other tools write."""
