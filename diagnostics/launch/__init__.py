"""Run a loader or a script under the recorder: in this process, or in a supervised child."""
