"""Bridges: pipelines inside Prefect, Dagster and Airflow. Each module needs its engine, and this page none.

In:    a project and a source of it, or a job file and a profile of the builder; from the engine, its name
       of the run, the number of the try, and what it does to a task: wait, stop, kill.
Out:   the engine's own graph, one task per stage, each with the edges of the pipeline; outcomes as the
       engine's states, with counts and a link to the dashboard.
Never: work on items (a task is a drain, which has a worker of its own), an engine's signal handlers, secrets
       in an engine's logs.
"""
