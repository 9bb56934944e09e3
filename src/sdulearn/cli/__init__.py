"""The command ``sdulearn``: one file a subcommand; the only place with argparse and print."""
