"""Alerts: what is wrong with a source or the project, judged by its own history.

In:    histories: figures per run and hour, and facts of now, of one source or of the project.
Out:   findings against a baseline, what becomes of an alert, and which alerts have one cause.
Never: SQL, the clock, the network; nothing here gathers, stores or delivers.
"""
