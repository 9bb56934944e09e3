"""What a fit found: as records, as findings, and as a page."""
