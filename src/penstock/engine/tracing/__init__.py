"""Traces: what runs, jobs, attempts and fetches took, sent to a collector in OpenTelemetry's protocol.

In:    the ends of attempts and fetches of a worker, and of runs from whoever leads.
Out:   spans over OTLP/HTTP.
Never: work in the turn, a wait of the event loop, or more memory while the collector is down.

Nothing of OpenTelemetry is imported on the event loop, and nothing at all where `tracing:` names no endpoint.
"""
