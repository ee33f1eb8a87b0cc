"""Exporters: a project's schedules as other schedulers read them.

In:    the settings of a project, and where it stands on the host.
Out:   the text of a workflow, a crontab or systemd units; and what could not be said in it.
Never: reading the clock, files or the environment; writing the value of a secret.
"""
