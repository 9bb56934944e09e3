"""The paper's experiments and new ones, from data to report: ``python -m reproduction``. A user of sdulearn."""
