"""The command line: steering and looking.

In:    the words an operator typed, a project.
Out:   tables for people, JSON for programs, one line and an exit code when something is wrong.
Never: a traceback, a secret, an escape sequence that came from outside; SQL; work of its own.
"""

from penstock.cli.entry import main

__all__ = ["main"]
