"""The recording: one SQLite file that holds one run. The only place that knows SQL."""
