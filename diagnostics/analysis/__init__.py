"""Pure functions: a recording in, tables and words out."""
