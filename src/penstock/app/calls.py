"""Calling a project from an event loop: its verbs wait for the store, so they are called in threads."""

from penstock.engine.worker.calls import Calls, InOneThread, InThreads

__all__ = ["Calls", "InOneThread", "InThreads"]
