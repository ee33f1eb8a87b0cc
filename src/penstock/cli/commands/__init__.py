"""Commands: one file for each, or for a group. Each is imported when it is typed."""
