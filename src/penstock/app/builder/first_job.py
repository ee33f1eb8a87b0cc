"""A first job, with companies to try it on: nothing is asked of the network."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.app.builder.job import FILE_NAME, SCHEMA_NAME, job_schema
from penstock.errors import Refused, UsageError
from penstock.settings.schema import modeline

JOB = """\
name: {name}
niche: bakeries
country: US
profile: quick            # quick, standard or deep

dumps:
  - path: companies.csv
# http: {{seeds: ["https://example.com/bakeries"]}}        # with profile: standard
# serp: {{provider: searx, url: "https://search.example.com"}}

budgets:
  max_http_requests: 2000
  max_http_bytes: 50000000
  time_budget_min: 90
  ram_mb: 4096

kpi_targets:
  min_quality_score: 40
  max_dup_pct: 1.5

source:
  limits: {{concurrency: 4}}
"""
COMPANIES = """\
name,street,city,postcode,region,phone,email,website
Acme Bakery,12 Main Street,Springfield,62701,IL,+1 217 555 0100,hello@acme.com,https://acme.com
ACME Bakery Inc.,12 Main St.,Springfield,62701,IL,(217) 555-0100,,
Corner Bread LLC,4 Oak Avenue,Boston,02108,MA,+1 617 555 0142,info@example.com,https://example.com
Old Mill Bakery,77 River Road,Salem,97301,OR,+1 503 555 0199,,
"""


def write_first_job(folder: Path) -> list[Path]:
    """Write a job, its schema and a list of companies; refused where one of them is there already."""
    texts = {
        FILE_NAME: modeline(SCHEMA_NAME) + JOB.format(name=_name(folder)),
        SCHEMA_NAME: json.dumps(job_schema(), indent=2, ensure_ascii=False) + "\n",
        "companies.csv": COMPANIES,
    }
    for name in texts:
        if (folder / name).exists():
            raise Refused(f"{folder / name} is there already", "name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} can't be written to: {error.strerror}") from None
    return [folder / name for name in texts]


def _name(folder: Path) -> str:
    kept = "".join(char for char in folder.absolute().name.lower() if char.isascii())
    return (
        "".join(char for char in kept if char.isalnum() or char in "-_").strip("-_") or "bakeries"
    )
