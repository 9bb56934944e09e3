"""What a fit found: as records, as a list of facts with a sentence each, and as a page."""
