"""Alerting: what the rules are shown, the evidence of what they find, and the messages about it.

In:    rollups, counters and snapshots of a project; an alert.
Out:   histories for the judge, evidence, and messages that routes accept.
Never: judging, moving an alert from one state to another.
"""
