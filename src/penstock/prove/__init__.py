"""Prove: the kill and fault sweep, on the machine and with the settings of a project.

In:    a project's settings, a seed, how many kills, how long.
Out:   for each scene what was lost, duplicated and left open, what was counted, how long recovery took; and
       what can't be tried here.
Never: the project's own data, code, sources or schedules; any network but loopback and its own store.

Everything happens in a scratch project: a folder beside the project's database, or a schema of its own on the
same server. The commands are the real ones, in processes of their own; the tests use the same code.
"""
