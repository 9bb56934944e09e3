"""The page of ``sdulearn ask``: what is shown of a row, who answered what, and the server."""
