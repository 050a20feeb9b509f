"""The probes: each measures one thing and hands it to the recorder."""
