"""The subcommands of `sdulearn`, one file each: HELP, add_arguments and run."""
