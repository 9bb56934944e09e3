"""Answers as other tools write them: a file a family of tools, each turned into a sheet of rows."""
