"""The command line's subcommands, one a file: ``add`` declares the options, ``main`` does it."""
