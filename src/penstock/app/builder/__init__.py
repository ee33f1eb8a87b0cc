"""The builder's jobs: a job.yaml as a project of its own, performed step by step.

In:    a job.yaml, a folder, and what the command line says over the job.
Out:   a project in the folder, runs of it that are told apart by their configuration, and a status per step.
Never: deciding by files what is done: the store knows.
"""
