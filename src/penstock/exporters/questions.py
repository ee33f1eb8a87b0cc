"""What dashboards ask of the views of the SQL interface: one list for Grafana and Metabase.

The names of the views are not qualified: the role that reads them has their schema in its search_path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Stand for what a dashboard chose: the time in steps of an hour or a day, and rows within the chosen time.
HOUR, DAY, WITHIN = "{hour}", "{day}", "{within}"
Chart = Literal["table", "stat", "bars", "lines"]


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and how its answer is best shown. One by time has its time in the column `time`."""

    name: str
    title: str
    sql: str
    chart: Chart = "table"
    about: str = ""

    @property
    def is_by_time(self) -> bool:
        return HOUR in self.sql or DAY in self.sql


BACKLOG = """\
SELECT job_type, COUNT(*) AS queued_jobs
FROM ingestion_jobs
WHERE status = 'queued'
GROUP BY job_type
ORDER BY job_type;"""
FAILURES = """\
SELECT job_type, organization_id, site_url, error_message, updated_at
FROM ingestion_jobs
WHERE status = 'failed'
ORDER BY updated_at DESC
LIMIT 50;"""
FRESHNESS = """\
SELECT domain, site_type, last_verified_at
FROM source_site_schemas
WHERE last_verified_at IS NULL OR last_verified_at < NOW() - INTERVAL '30 days'
ORDER BY last_verified_at NULLS FIRST;"""
POLLUTION = """\
SELECT
  domain,
  jsonb_array_length(pollution_notes) AS pollution_events
FROM source_site_schemas
WHERE pollution_notes IS NOT NULL
  AND jsonb_array_length(pollution_notes) > 0
ORDER BY pollution_events DESC;"""
AGING = """\
SELECT status, COUNT(*) AS refs
FROM supplier_references
GROUP BY status;"""
PER_HOUR = """\
SELECT {hour}, status AS metric, COUNT(*) AS jobs
FROM ingestion_jobs
WHERE {within}
GROUP BY 1, 2
ORDER BY 1;"""
PER_DAY = """\
SELECT {day},
  SUM((result ->> 'inserted')::bigint) AS inserted,
  SUM((result ->> 'updated')::bigint) AS updated,
  SUM((result ->> 'rejected')::bigint) AS rejected
FROM ingestion_jobs
WHERE {within} AND result IS NOT NULL
GROUP BY 1
ORDER BY 1;"""
DURATIONS = """\
SELECT job_type, COUNT(*) AS jobs, percentile_cont(0.5) WITHIN GROUP (ORDER BY took_s) AS median_s,
  percentile_cont(0.95) WITHIN GROUP (ORDER BY took_s) AS p95_s
FROM (
  SELECT job_type, extract(epoch FROM completed_at - started_at) AS took_s
  FROM ingestion_jobs
  WHERE {within} AND completed_at IS NOT NULL
) AS ended
GROUP BY job_type
ORDER BY p95_s DESC;"""
QUESTIONS = (
    Question(
        "failures-last-hour",
        "Failures in the last hour",
        "SELECT COUNT(*) AS failed_jobs\nFROM ingestion_jobs\n"
        "WHERE status = 'failed' AND updated_at > NOW() - INTERVAL '1 hour';",
        "stat",
        "More than 10 are worth an alert.",
    ),
    Question(
        "running",
        "Running now",
        "SELECT COUNT(*) AS running_jobs\nFROM ingestion_jobs\nWHERE status = 'running';",
        "stat",
    ),
    Question(
        "blocked",
        "Blocked",
        "SELECT COUNT(*) AS blocked_jobs\nFROM ingestion_jobs\nWHERE status = 'blocked';",
        "stat",
    ),
    Question(
        "problems",
        "Problems of the service",
        "SELECT problem, since, remedy\nFROM penstock_problems();",
        about="Nobody works, or what was asked for waits: no row is good.",
    ),
    Question("job-backlog", "Job backlog", BACKLOG, "bars"),
    Question("failure-feed", "Failure feed", FAILURES),
    Question("schema-freshness", "Schema freshness", FRESHNESS),
    Question("image-pollution-watch", "Image pollution watch", POLLUTION, "bars"),
    Question("supplier-reference-aging", "Supplier reference aging", AGING, "bars"),
    Question("jobs-per-hour", "Jobs per hour, by status", PER_HOUR, "lines"),
    Question("records-per-day", "Records per day", PER_DAY, "lines"),
    Question("durations", "How long jobs take", DURATIONS),
    Question(
        "blocked-by",
        "What is blocked, and by what",
        "SELECT blocked_by, job_type, COUNT(*) AS jobs, MIN(updated_at) AS since\n"
        "FROM ingestion_jobs\n"
        "WHERE status = 'blocked'\nGROUP BY 1, 2\nORDER BY since;",
    ),
    Question(
        "refused-requests",
        "Requests of SQL clients that were refused",
        "SELECT id, source, status, request_error, updated_at\nFROM ingestion_jobs\n"
        "WHERE request_error IS NOT NULL\nORDER BY updated_at DESC\nLIMIT 50;",
    ),
    Question(
        "low-confidence",
        "Site schemas with little confidence",
        "SELECT domain, extraction_confidence, classification_confidence, updated_at\n"
        "FROM source_site_schemas\n"
        "WHERE extraction_confidence < 0.7\nORDER BY extraction_confidence;",
    ),
    Question(
        "polluted",
        "Domains with more than 5 pollution notes",
        "SELECT domain, jsonb_array_length(pollution_notes) AS notes, updated_at\n"
        "FROM source_site_schemas\n"
        "WHERE jsonb_typeof(pollution_notes) = 'array' AND jsonb_array_length(pollution_notes) > 5\n"
        "ORDER BY notes DESC;",
    ),
    Question(
        "stuck-references",
        "Supplier references that are new for more than 7 days",
        "SELECT id, supplier_name, source_domain, created_at\nFROM supplier_references\n"
        "WHERE status = 'new' AND created_at < NOW() - INTERVAL '7 days'\nORDER BY created_at;",
    ),
    Question(
        "organizations",
        "Organizations, the longest without data first",
        "SELECT id, name, website, status, last_ingested_at\nFROM organizations\n"
        "ORDER BY last_ingested_at NULLS FIRST;",
    ),
)
